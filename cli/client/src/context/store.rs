//! The file of the contexts: `$TRIBUTARY_CONFIG`, else `tributary/config.yaml` in the user's directory of settings.
//! Only its user may read it. It is replaced as a whole, so that a reader sees the old file or the new one.

use std::{
    env,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow, ensure};
use shared::{model::advice, process::FileError};

use super::entry::{Context, Contexts, Pem};

/// Names the file.
const VARIABLE: &str = "TRIBUTARY_CONFIG";
/// Largest file that is read, in bytes: a hundred contexts with their certificates have a quarter of it.
const BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Largest PEM file that is read, in bytes.
const PEM_BYTES_MAX: u64 = 1024 * 1024;

/// The file of the contexts.
#[derive(Debug, Clone)]
pub struct Store {
    path: PathBuf,
}

impl Store {
    /// The file of this process's user.
    pub fn of_user() -> anyhow::Result<Self> {
        let named = env::var_os(VARIABLE)
            .filter(|path| !path.is_empty())
            .map(PathBuf::from);
        let below = |variable: &str| {
            env::var_os(variable)
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
        };
        let of_user = || {
            let settings =
                below("XDG_CONFIG_HOME").or_else(|| below("HOME").map(|home| home.join(".config")))?;
            Some(settings.join("tributary/config.yaml"))
        };
        let path = named.or_else(of_user);
        let path = path.with_context(|| {
            format!("there is no place for contexts: name a file in {VARIABLE}, or set HOME")
        })?;
        Ok(Self { path })
    }

    /// A file at this path.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the contexts; without a file there are none.
    pub fn read(&self) -> anyhow::Result<Contexts> {
        let path = self.path.display();
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Contexts::default()),
            Err(error) => return Err(error).with_context(|| format!("cannot read {path}")),
        };
        let mut text = String::new();
        let read = file.take(BYTES_MAX + 1).read_to_string(&mut text);
        read.with_context(|| format!("cannot read {path}"))?;
        ensure!(
            text.len() as u64 <= BYTES_MAX,
            "{path} has more than {BYTES_MAX} bytes"
        );
        Contexts::parse(&text).map_err(|error| {
            anyhow!("{path} holds no contexts: {error}. Correct it, or name another file in {VARIABLE}")
        })
    }

    /// The context of this name, or the current one; `None` if none is named and none is current. Paths in it are
    /// absolute, or relative to the working directory if the file's path is.
    pub fn context(&self, name: Option<&str>) -> anyhow::Result<Option<Context>> {
        let contexts = self.read()?;
        let Some(name) = name.or(contexts.current.as_deref()) else {
            return Ok(None);
        };
        let found = contexts.get(name).cloned();
        let found = found.ok_or_else(|| unknown(name, &contexts))?;
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let below = |pem: Pem| pem.below(directory);
        Ok(Some(Context {
            ca: below(found.ca),
            certificate: below(found.certificate),
            key: below(found.key),
            ..found
        }))
    }

    /// Adds a context, or replaces the one of its name. The first one becomes the current one.
    pub fn put(&self, context: Context) -> anyhow::Result<()> {
        self.change(|contexts| {
            contexts.put(context);
            Ok(())
        })
    }

    /// Changes the contexts, one process at a time. If the file cannot be read or `change` fails, the file stays as it is.
    pub fn change<T>(&self, change: impl FnOnce(&mut Contexts) -> anyhow::Result<T>) -> anyhow::Result<T> {
        // A link stays a link: the file that it leads to is replaced.
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let directory = path
            .parent()
            .filter(|directory| !directory.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        private_directory(directory)?;
        let mut beside = path.file_name().unwrap_or_default().to_owned();
        beside.push(".lock");
        let _lock = lock(&path.with_file_name(beside))?;
        let mut contexts = self.read()?;
        let result = change(&mut contexts)?;
        let cannot = || format!("cannot write {}", path.display());
        // A new temporary file can be read by its user only.
        let mut file = tempfile::NamedTempFile::new_in(directory).with_context(cannot)?;
        file.write_all(contexts.text()?.as_bytes()).with_context(cannot)?;
        file.as_file().sync_all().with_context(cannot)?;
        file.persist(&path)
            .map_err(|error| error.error)
            .with_context(cannot)?;
        sync_directory(directory).with_context(cannot)?;
        Ok(result)
    }
}

/// Reads the bytes of PEM that `flag` or a context names.
pub fn bytes(pem: &Pem, flag: &str) -> anyhow::Result<Vec<u8>> {
    let path = match pem {
        Pem::Inline(text) => return Ok(text.clone().into_bytes()),
        Pem::File(path) => path,
    };
    let unreadable = |error: io::Error| FileError::new(flag, path, &error);
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(PEM_BYTES_MAX + 1).read_to_end(&mut bytes));
    let read = read.map_err(unreadable)? as u64;
    ensure!(
        read <= PEM_BYTES_MAX,
        "{flag}: {} has more than {PEM_BYTES_MAX} bytes",
        path.display()
    );
    Ok(bytes)
}

/// The error for a name that is not in the file.
pub fn unknown(name: &str, contexts: &Contexts) -> anyhow::Error {
    match contexts.names() {
        names if names.is_empty() => {
            anyhow!(
                "there is no context {name}, nor any other: `{}` makes it",
                advice::context_set(name)
            )
        }
        names => anyhow!("there is no context {name}; there are: {names}"),
    }
}

/// Makes a directory that only its user may read, unless it is there.
fn private_directory(directory: &Path) -> anyhow::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let made = builder.create(directory);
    made.with_context(|| format!("cannot make {}", directory.display()))
}

/// Makes the rename of a file last.
fn sync_directory(directory: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(directory)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = directory;
    Ok(())
}

/// Waits until no other process has locked this file, which is made if it is missing. The lock ends with the returned value.
pub fn lock(path: &Path) -> anyhow::Result<File> {
    let opened = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path);
    let cannot = || format!("cannot lock {}", path.display());
    let file = opened.with_context(cannot)?;
    file.lock().with_context(cannot)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(name: &str) -> Context {
        Context {
            name: name.to_owned(),
            clusterset: None,
            hub: vec!["https://hub:8443".parse().expect("an address")],
            ca: Pem::File("ca.crt".into()),
            certificate: Pem::File("/etc/alice.crt".into()),
            key: Pem::Inline("-----BEGIN PRIVATE KEY-----\n".into()),
        }
    }

    #[test]
    fn a_missing_file_has_no_contexts_and_a_written_one_is_its_users_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::at(directory.path().join("new/config.yaml"));
        assert_eq!(store.context(None).expect("nothing"), None);
        store.put(context("prod")).expect("written");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
            assert_eq!(mode(store.path()), 0o600);
            assert_eq!(mode(&directory.path().join("new")), 0o700);
        }
        let read = store.context(None).expect("read").expect("it is current");
        assert_eq!(read.ca, Pem::File(directory.path().join("new/ca.crt")));
        assert_eq!(read.certificate, Pem::File("/etc/alice.crt".into()));
    }

    #[test]
    fn a_bad_file_is_told_with_its_line_and_stays_as_it_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::at(directory.path().join("config.yaml"));
        let bad = "contexts:\n- name: prod\n  hubs: []\n";
        fs::write(store.path(), bad).expect("written");
        let error = store.put(context("test")).expect_err("it is bad").to_string();
        assert!(
            error.contains("config.yaml") && error.contains("line 3"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(store.path()).expect("read"), bad);
    }

    #[test]
    fn a_change_that_fails_changes_nothing_and_a_link_stays_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let real = Store::at(directory.path().join("real.yaml"));
        real.put(context("prod")).expect("written");
        let before = fs::read(real.path()).expect("read");
        let failed = real.change(|contexts| {
            contexts.remove("prod");
            Err::<(), _>(anyhow!("no"))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read(real.path()).expect("read"), before);
        #[cfg(unix)]
        {
            let link = Store::at(directory.path().join("link.yaml"));
            std::os::unix::fs::symlink(real.path(), link.path()).expect("linked");
            link.put(context("test")).expect("written");
            assert!(fs::symlink_metadata(link.path()).expect("there").is_symlink());
            assert_eq!(real.read().expect("read").names(), "prod, test");
        }
    }

    #[test]
    fn processes_that_write_at_once_lose_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::at(directory.path().join("config.yaml"));
        std::thread::scope(|scope| {
            for index in 0..8 {
                let store = &store;
                scope.spawn(move || store.put(context(&format!("c{index}"))).expect("written"));
            }
        });
        assert_eq!(store.read().expect("read").contexts.len(), 8);
    }

    #[test]
    fn an_unknown_context_is_told_with_those_that_there_are() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::at(directory.path().join("config.yaml"));
        let unknown = |store: &Store| store.context(Some("nope")).expect_err("unknown").to_string();
        assert!(unknown(&store).contains("tributary context set nope"));
        store.put(context("prod")).expect("written");
        assert_eq!(unknown(&store), "there is no context nope; there are: prod");
    }
}
