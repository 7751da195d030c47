//! Owns: archives that are a function of what is in them: one owner, one time, one order.
//! Never: reads a file's own time or owner.

use std::io::Write;

use anyhow::Context;
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// A file of an archive.
pub struct File {
    /// Its path, without a slash at the beginning.
    pub path: String,
    /// Its permissions.
    pub mode: u32,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// Another name of a file of an archive, in the same directory.
pub struct Link {
    /// Its path, without a slash at the beginning.
    pub path: String,
    /// The name of the file.
    pub file: &'static str,
}

/// A tar archive of these files with the directories that they lie in, all of root's and of this time, in seconds.
pub fn archive(files: &[File], created: u64) -> anyhow::Result<Vec<u8>> {
    archive_with_links(files, &[], created)
}

/// The same with links, which lie in directories of the files.
pub fn archive_with_links(files: &[File], links: &[Link], created: u64) -> anyhow::Result<Vec<u8>> {
    let mut archive = Builder::new(Vec::new());
    let mut made: Vec<&str> = Vec::new();
    for File { path, mode, bytes } in files {
        for (end, _) in path.match_indices('/') {
            let directory = &path[..=end];
            if !made.contains(&directory) {
                made.push(directory);
                let mut header = header(EntryType::Directory, 0o755, 0, created);
                archive.append_data(&mut header, directory, std::io::empty())?;
            }
        }
        let mut header = header(EntryType::Regular, *mode, bytes.len() as u64, created);
        archive
            .append_data(&mut header, path, &**bytes)
            .with_context(|| format!("{path} does not fit into an archive"))?;
    }
    for Link { path, file } in links {
        let mut header = header(EntryType::Symlink, 0o777, 0, created);
        archive
            .append_link(&mut header, path, file)
            .with_context(|| format!("{path} does not fit into an archive"))?;
    }
    Ok(archive.into_inner()?)
}

fn header(kind: EntryType, mode: u32, size: u64, created: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(created);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// The trade of time for size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// As small as gzip can make it: for what is published.
    Best,
    /// In less time, and a quarter larger: for what only this machine's tests read.
    Fast,
}

/// The same bytes, compressed; the header names no file and no time.
pub fn compressed(bytes: &[u8], effort: Effort) -> anyhow::Result<Vec<u8>> {
    let level = match effort {
        Effort::Best => Compression::best(),
        Effort::Fast => Compression::fast(),
    };
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), level);
    gzip.write_all(bytes)?;
    Ok(gzip.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Vec<File> {
        let file = |path: &str| File {
            path: path.into(),
            mode: 0o555,
            bytes: path.into(),
        };
        vec![
            file("usr/local/bin/one"),
            file("usr/local/bin/two"),
            file("usr/share/three"),
        ]
    }

    #[test]
    fn every_directory_comes_once_and_before_what_is_in_it() {
        let bytes = archive(&files(), 7).unwrap();
        let mut archive = tar::Archive::new(&*bytes);
        let mut paths = Vec::new();
        for entry in archive.entries().unwrap() {
            let header = entry.unwrap().header().clone();
            assert_eq!((header.mtime().unwrap(), header.uid().unwrap()), (7, 0));
            paths.push(header.path().unwrap().to_string_lossy().into_owned());
        }
        let expected = [
            "usr/",
            "usr/local/",
            "usr/local/bin/",
            "usr/local/bin/one",
            "usr/local/bin/two",
            "usr/share/",
            "usr/share/three",
        ];
        assert_eq!(paths, expected);
    }

    #[test]
    fn a_link_names_its_file_and_comes_behind_it() {
        let link = Link {
            path: "usr/local/bin/other".into(),
            file: "one",
        };
        let bytes = archive_with_links(&files(), &[link], 7).unwrap();
        let mut archive = tar::Archive::new(&*bytes);
        let last = archive.entries().unwrap().last().unwrap().unwrap();
        assert_eq!(last.header().entry_type(), EntryType::Symlink);
        assert_eq!(last.header().mtime().unwrap(), 7);
        assert_eq!(last.path().unwrap().to_str(), Some("usr/local/bin/other"));
        assert_eq!(last.link_name().unwrap().unwrap().to_str(), Some("one"));
    }

    #[test]
    fn equal_files_give_equal_bytes_and_others_do_not() {
        let bytes = |created| compressed(&archive(&files(), created).unwrap(), Effort::Best).unwrap();
        assert_eq!(bytes(7), bytes(7));
        assert_ne!(bytes(7), bytes(8));
    }
}
