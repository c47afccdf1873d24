//! [`Key`]: keys that are paths.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// A hierarchical key: names with slashes between them, `/photos/2026/cover`.
///
/// Stores take any bytes as keys; this type is for those who want a tree of them.
/// A key begins with a slash and has none at its end, no two in a row: other
/// texts are brought into that form. Nothing else is changed, whatever the names
/// are made of (`.` and `..` mean nothing here), so two keys are the same if, and
/// only if, all their names are. The bytes that a store gets are those of the text,
/// so that `/a/b` and `/a:b`, or `/x.v1` and `/x.v2`, are different objects.
///
/// A name can be that of an instance: in `/songs:7` the kind is `songs` and the
/// name is `7`.
///
/// Keys are ordered as their bytes are, which is the order in which a store
/// lists them.
///
/// ```
/// use fs_store::{Key, ListOptions, MemDisk, OpenOptions};
///
/// let store = OpenOptions::new().create(true).open_on(MemDisk::new())?;
/// let album = Key::new("music/album:7");
/// store.put(album.child("cover.jpg"), b"...")?;
/// store.put(album.child("cover.png"), b"....")?;
/// store.put("/music/album:70", b"another one")?;
///
/// let below = store.list(&ListOptions::new().prefix(album.prefix()))?;
/// let below = below.map(|item| item.map(|item| Key::from_bytes(&item.key).expect("a key")));
/// let below: Vec<Key> = below.collect::<Result<_, _>>()?;
/// assert_eq!(below, [Key::new("/music/album:7/cover.jpg"), Key::new("/music/album:7/cover.png")]);
/// assert_eq!(below[0].parent(), Some(album));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// In normal form; `/` alone is the root.
    text: String,
}

impl Key {
    /// The key of this text: as it is, but for slashes at the beginning, at the
    /// end and in a row.
    ///
    /// ```
    /// use fs_store::Key;
    ///
    /// assert_eq!(Key::new("a//b/"), Key::new("/a/b"));
    /// assert_ne!(Key::new("/a/b"), Key::new("/a:b"));
    /// assert_eq!(Key::new("//"), Key::root());
    /// ```
    pub fn new(text: impl AsRef<str>) -> Self {
        Self::root().join(text)
    }

    /// The key above all others, `/`.
    pub fn root() -> Self {
        Self { text: "/".to_owned() }
    }

    /// The key that has these bytes in a store; `None` if no key has, since they
    /// are no text or not in normal form.
    ///
    /// ```
    /// use fs_store::Key;
    ///
    /// assert_eq!(Key::from_bytes(b"/a/b"), Some(Key::new("a/b")));
    /// assert_eq!(Key::from_bytes(b"a/b"), None);
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let text = str::from_utf8(bytes).ok()?;
        let key = Self::new(text);
        (key.text == text).then_some(key)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether this is the key above all others.
    pub fn is_root(&self) -> bool {
        self.text.len() == 1
    }

    /// The names, from the top down; none of them is empty. The root has none.
    ///
    /// ```
    /// use fs_store::Key;
    ///
    /// assert_eq!(Key::new("/a/b:c").parts().collect::<Vec<_>>(), ["a", "b:c"]);
    /// ```
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.text.split('/').filter(|part| !part.is_empty())
    }

    /// How many names. The root has none, a top-level key has one.
    pub fn depth(&self) -> usize {
        self.parts().count()
    }

    /// The last name as it is written, kind and all; empty for the root.
    fn last(&self) -> &str {
        self.text.rsplit_once('/').expect("it begins with a slash").1
    }

    /// The last name, without its kind: what follows its last colon. Empty for
    /// the root.
    ///
    /// ```
    /// use fs_store::Key;
    ///
    /// assert_eq!(Key::new("/music/album:7").name(), "7");
    /// assert_eq!(Key::new("/music/cover.jpg").name(), "cover.jpg");
    /// ```
    pub fn name(&self) -> &str {
        self.last().rsplit_once(':').map_or(self.last(), |(_, name)| name)
    }

    /// Of what kind the last name is: what is before its last colon. `None` if
    /// it has no colon.
    ///
    /// ```
    /// use fs_store::Key;
    ///
    /// assert_eq!(Key::new("/music/album:7").kind(), Some("album"));
    /// assert_eq!(Key::new("/music/album").kind(), None);
    /// ```
    pub fn kind(&self) -> Option<&str> {
        self.last().rsplit_once(':').map(|(kind, _)| kind)
    }

    /// The key one name shorter; `None` for the root.
    ///
    /// ```
    /// use fs_store::Key;
    ///
    /// let key = Key::new("/a/b");
    /// assert_eq!(key.parent(), Some(Key::new("/a")));
    /// assert_eq!(key.parent().unwrap().parent(), Some(Key::root()));
    /// assert_eq!(Key::root().parent(), None);
    /// ```
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let (above, _) = self.text.rsplit_once('/').expect("it begins with a slash");
        Some(if above.is_empty() { Self::root() } else { Self { text: above.to_owned() } })
    }

    /// The key one name longer.
    ///
    /// # Panics
    ///
    /// If `name` is empty or has a slash: that is no child. [`Key::join`] takes paths.
    ///
    /// ```
    /// use fs_store::Key;
    ///
    /// assert_eq!(Key::new("/a").child("b.c").as_str(), "/a/b.c");
    /// ```
    #[must_use]
    pub fn child(&self, name: impl AsRef<str>) -> Self {
        let name = name.as_ref();
        assert!(!name.is_empty() && !name.contains('/'), "{name:?} is no name of a child");
        self.join(name)
    }

    /// The key below this one that a path leads to.
    ///
    /// ```
    /// use fs_store::Key;
    ///
    /// assert_eq!(Key::new("/a").join("b/c").as_str(), "/a/b/c");
    /// assert_eq!(Key::new("/a").join(Key::new("/b")).as_str(), "/a/b");
    /// assert_eq!(Key::new("/a").join("").as_str(), "/a");
    /// ```
    #[must_use]
    pub fn join(&self, path: impl AsRef<str>) -> Self {
        let path = path.as_ref();
        let mut text = String::with_capacity(self.text.len() + 1 + path.len());
        if !self.is_root() {
            text.push_str(&self.text);
        }
        for part in path.split('/').filter(|part| !part.is_empty()) {
            text.push('/');
            text.push_str(part);
        }
        if text.is_empty() { Self::root() } else { Self { text } }
    }

    /// The instance `name` of what this key is the kind of.
    ///
    /// # Panics
    ///
    /// If `name` has a slash, or this is the root, which can be no kind.
    ///
    /// ```
    /// use fs_store::Key;
    ///
    /// let seven = Key::new("/music/album").instance("7");
    /// assert_eq!(seven.as_str(), "/music/album:7");
    /// assert_eq!(seven.instance_of(), Some(Key::new("/music/album")));
    /// ```
    #[must_use]
    pub fn instance(&self, name: impl AsRef<str>) -> Self {
        let name = name.as_ref();
        assert!(!name.contains('/'), "{name:?} is no name of an instance");
        assert!(!self.is_root(), "the root is no kind");
        Self { text: format!("{}:{name}", self.text) }
    }

    /// The key that this one is an instance of; `None` if it is none.
    pub fn instance_of(&self) -> Option<Self> {
        let kind = self.kind().filter(|kind| !kind.is_empty())?;
        Some(self.parent().expect("it has a name").child(kind))
    }

    /// Whether `other` is below this key, at any depth. No key is below itself,
    /// and `/ab` is not below `/a`.
    ///
    /// ```
    /// use fs_store::Key;
    ///
    /// assert!(Key::new("/a").is_ancestor_of(&Key::new("/a/b/c")));
    /// assert!(!Key::new("/a").is_ancestor_of(&Key::new("/ab")));
    /// assert!(!Key::new("/a").is_ancestor_of(&Key::new("/a")));
    /// ```
    pub fn is_ancestor_of(&self, other: &Self) -> bool {
        if self.is_root() {
            return !other.is_root();
        }
        other.text.strip_prefix(&self.text).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Whether this key is below `other`.
    pub fn is_descendant_of(&self, other: &Self) -> bool {
        other.is_ancestor_of(self)
    }

    /// With which text all keys below this one begin, and no other key: for
    /// [`ListOptions::prefix`](crate::ListOptions::prefix).
    ///
    /// ```
    /// use fs_store::Key;
    ///
    /// assert_eq!(Key::new("/a").prefix(), "/a/");
    /// assert_eq!(Key::root().prefix(), "/");
    /// ```
    pub fn prefix(&self) -> String {
        if self.is_root() { self.text.clone() } else { format!("{}/", self.text) }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?})", self.text)
    }
}

impl FromStr for Key {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::new(text))
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.text
    }
}

impl From<Key> for Vec<u8> {
    fn from(key: Key) -> Self {
        key.text.into_bytes()
    }
}

impl From<&Key> for Vec<u8> {
    fn from(key: &Key) -> Self {
        key.text.clone().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_of_one_key_differ_in_slashes_only() {
        for text in ["a/b", "/a/b", "/a/b/", "//a///b//"] {
            assert_eq!(Key::new(text).as_str(), "/a/b", "{text}");
        }
        for text in ["", "/", "///"] {
            assert_eq!(Key::new(text), Key::root(), "{text}");
        }
    }

    #[test]
    fn what_other_stores_take_for_the_same_is_not() {
        let texts = ["/a/b", "/a:b", "/x.v1", "/x.v2", "/x", "/A/b", "/a/./b", "/a/../b", "/a b"];
        for (at, one) in texts.iter().enumerate() {
            for other in &texts[..at] {
                assert_ne!(Key::new(one).as_ref() as &[u8], Key::new(other).as_ref() as &[u8]);
            }
        }
    }

    #[test]
    fn a_name_has_a_kind_before_its_last_colon() {
        let cases = [
            ("/a/b:c", Some("b"), "c"),
            ("/a:x/b", None, "b"),
            ("/a:b:c", Some("a:b"), "c"),
            ("/:c", Some(""), "c"),
            ("/a:", Some("a"), ""),
            ("/", None, ""),
        ];
        for (text, kind, name) in cases {
            let key = Key::new(text);
            assert_eq!((key.kind(), key.name()), (kind, name), "{text}");
        }
        assert_eq!(Key::new("/:c").instance_of(), None);
        assert_eq!(Key::new("/a:b:c").instance_of(), Some(Key::new("/a:b")));
    }

    #[test]
    fn bytes_that_are_no_normal_form_are_no_key() {
        let not_keys: [&[u8]; 6] = [b"", b"a", b"/a/", b"//a", b"/a//b", b"/\xFF"];
        for bytes in not_keys {
            assert_eq!(Key::from_bytes(bytes), None, "{}", bytes.escape_ascii());
        }
        assert_eq!(Key::from_bytes(b"/"), Some(Key::root()));
    }

    #[test]
    #[should_panic(expected = "no name of a child")]
    fn a_child_is_one_level_down() {
        let _ = Key::root().child("a/b");
    }

    fn parts() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec("[^/]{1,6}", 0..5)
    }

    proptest! {
        #[test]
        fn names_come_back_from_the_bytes(parts in parts()) {
            let key = parts.iter().fold(Key::root(), |key, part| key.child(part));
            let bytes: &[u8] = key.as_ref();
            let back = Key::from_bytes(bytes);
            prop_assert_eq!(back.as_ref(), Some(&key));
            prop_assert_eq!(key.parts().collect::<Vec<_>>(), parts.clone());
            prop_assert_eq!(key.depth(), parts.len());
            let shown = key.to_string();
            prop_assert_eq!(Key::new(shown), key.clone());
            prop_assert_eq!(Key::new(parts.join("//")), key);
        }

        #[test]
        fn other_names_have_other_bytes(one in parts(), other in parts()) {
            let key = |parts: &[String]| parts.iter().fold(Key::root(), |key, part| key.child(part));
            let (a, b) = (key(&one), key(&other));
            prop_assert_eq!(AsRef::<[u8]>::as_ref(&a) == AsRef::<[u8]>::as_ref(&b), one == other);
            prop_assert_eq!(a.cmp(&b), AsRef::<[u8]>::as_ref(&a).cmp(b.as_ref()));
        }

        #[test]
        fn ancestors_are_those_whose_names_begin_the_names(one in parts(), more in parts()) {
            let above = one.iter().fold(Key::root(), |key, part| key.child(part));
            let below = above.join(more.join("/"));
            prop_assert_eq!(above.is_ancestor_of(&below), !more.is_empty());
            prop_assert_eq!(below.is_descendant_of(&above), !more.is_empty());
            prop_assert!(!below.is_ancestor_of(&above));
            prop_assert_eq!(below.as_str().starts_with(&above.prefix()), !more.is_empty() || above.is_root());
            let ancestors = std::iter::successors(below.parent(), Key::parent);
            prop_assert_eq!(ancestors.count(), below.depth());
        }

        #[test]
        fn instances_come_back(parts in parts(), name in "[^/:]{0,6}") {
            let kind = parts.iter().fold(Key::new("/k"), |key, part| key.child(part));
            let instance = kind.instance(&name);
            prop_assert_eq!(instance.name(), name);
            prop_assert_eq!(instance.instance_of(), Some(kind.clone()));
            prop_assert_eq!(instance.parent(), kind.parent());
        }
    }
}
