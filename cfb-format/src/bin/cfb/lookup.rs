//! From a path as typed to an entry of the file.
//!
//! A typed path has the names of [`escape::shown`], so what `ls` prints can be
//! given back, whatever the file holds. Names of installer databases may be
//! given decoded as well.

use cfb_format::{Entry, EntryKind, Error};

use crate::failure::Failure;
use crate::{Compound, escape, listing};

/// The entry at a typed path. `""` and `"/"` are the root.
pub(crate) fn find(file: &Compound, typed: &str) -> Result<Entry, Failure> {
    let names: Vec<Vec<u16>> = components(typed).map(escape::units_of).collect();
    if let Some(path) = library_path(&names) {
        match file.entry(path.as_str()) {
            Ok(entry) => return Ok(entry),
            Err(Error::NotFound { .. } | Error::NotAStorage { .. } | Error::BadName { .. }) => {}
            Err(error) => return Err(Failure::because(format!("cannot find {typed}"), error)),
        }
    }
    let mut at = file.root();
    for name in &names {
        at = child(file, &at, name)?.ok_or_else(|| Failure::new(format!("no entry {typed}")))?;
    }
    Ok(at)
}

/// The entry at a typed path, or `None`.
pub(crate) fn find_if_there(file: &Compound, typed: &str) -> Option<Entry> {
    // `find` fails on a name that is not there and on nothing else that the
    // caller would not meet again at once.
    find(file, typed).ok()
}

/// The child with exactly this name, or with this name once decoded.
fn child(file: &Compound, parent: &Entry, name: &[u16]) -> Result<Option<Entry>, Failure> {
    if parent.kind() == EntryKind::Stream {
        return Ok(None);
    }
    let mut children = listing::children(file, parent)?;
    let decoded = String::from_utf16(name).ok();
    let position = children.iter().position(|child| child.name_utf16() == name).or_else(|| {
        children.iter().position(|child| {
            decoded.is_some() && cfb_format::decode_msi_name(child.name_utf16()) == decoded
        })
    });
    Ok(position.map(|at| children.swap_remove(at)))
}

/// A typed path as the library takes it for an entry still to be made.
///
/// # Errors
///
/// When a name has units that no `&str` path can carry.
pub(crate) fn new_path(typed: &str) -> Result<String, Failure> {
    let names: Vec<Vec<u16>> = components(typed).map(escape::units_of).collect();
    if names.is_empty() {
        return Err(Failure::new("the path names the root"));
    }
    library_path(&names)
        .ok_or_else(|| Failure::new(format!("{typed}: no entry can be made under such a name")))
}

/// A typed path cut before its last name.
pub(crate) fn parent_and_name(typed: &str) -> (&str, &str) {
    let typed = typed.trim_end_matches('/');
    typed.rsplit_once('/').unwrap_or(("", typed))
}

fn components(typed: &str) -> impl Iterator<Item = &str> {
    typed.split('/').filter(|name| !name.is_empty())
}

/// The names joined for the library, if each survives that.
fn library_path(names: &[Vec<u16>]) -> Option<String> {
    let names: Option<Vec<String>> = names
        .iter()
        .map(|units| {
            let name = String::from_utf16(units).ok()?;
            (!name.is_empty() && !name.contains('/')).then_some(name)
        })
        .collect();
    Some(names?.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_at_the_ends_or_doubled_add_no_names() {
        assert_eq!(new_path("/a//b/").expect("plain names"), "a/b");
        assert_eq!(new_path("a/%u0005b").expect("plain names"), "a/\u{5}b");
        assert_eq!(parent_and_name("/a/b/"), ("/a", "b"));
        assert_eq!(parent_and_name("b"), ("", "b"));
    }

    #[test]
    fn names_no_str_path_can_carry_are_refused() {
        for typed in ["/", "", "%u", "a/%u", "a%u002Fb", "a/%uD800"] {
            assert!(new_path(typed).is_err(), "{typed}");
        }
    }
}
