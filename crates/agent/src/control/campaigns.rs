//! Records of campaigns that were ordered over a network, stored in the spool until their owner has fetched them.
//!
//! A campaign has a folder, `campaign-ID`, with the name of its owner in the file `owner` and the records of each run
//! and node below it. Folders outlive the program: records of a killed agent can be fetched when it runs again. Paths
//! are relative to the spool, which is the working directory.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::UNIX_EPOCH;

use super::lock;

const PREFIX: &str = "campaign-";
const OWNER: &str = "owner";
/// Number of hexadecimal digits of a campaign's name.
const DIGITS: usize = 32;
/// Greatest number of folders searched for one list.
const MOST: usize = 10_000;
/// Sessions of one campaign begin concurrently, one for each interface of a host: none may see a half-written owner.
static CLAIMING: Mutex<()> = Mutex::new(());

/// The name of a campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Campaign(String);

impl Campaign {
    /// Parses a caller's name of a campaign.
    ///
    /// # Errors
    /// A sentence, if it is not 32 lower-case hexadecimal digits.
    pub fn named(name: &str) -> Result<Self, String> {
        let right =
            name.len() == DIGITS && name.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
        if right {
            Ok(Self(name.to_owned()))
        } else {
            Err(format!(
                "the name of a campaign is {DIGITS} hexadecimal digits, not \"{}\"",
                name.escape_debug()
            ))
        }
    }

    /// Its folder.
    pub fn folder(&self) -> PathBuf {
        PathBuf::from(format!("{PREFIX}{}", self.0))
    }

    /// Creates its folder for `owner`, unless it has one already.
    ///
    /// # Errors
    /// The folder belongs to another owner, or the disk refuses.
    pub fn claim(&self, owner: &str) -> io::Result<()> {
        claim(&self.folder(), owner)
    }

    /// The owner of its records.
    ///
    /// # Errors
    /// There is no such campaign.
    pub fn owner(&self) -> io::Result<String> {
        owner_of(&self.folder())
    }

    /// Folder of the records of a node in a run.
    pub fn records(&self, run: u32, node: u16) -> PathBuf {
        place(&self.folder(), run, node)
    }

    /// Removes the records of a node in a run; the campaign stays.
    ///
    /// # Errors
    /// The disk refuses; there are none.
    pub fn discard(&self, run: u32, node: u16) -> io::Result<()> {
        let records = self.records(run, node);
        fs::remove_dir_all(&records)?;
        // Fails if other nodes have records of the run there.
        let _ = records.parent().map(fs::remove_dir);
        Ok(())
    }

    /// Removes its folder if there are no records in it.
    pub fn tidy(&self) {
        let _one = lock(&CLAIMING);
        let folder = self.folder();
        if runs(&folder).is_empty() && fs::remove_file(folder.join(OWNER)).is_ok() {
            let _ = fs::remove_dir(&folder);
        }
    }
}

fn claim(folder: &Path, owner: &str) -> io::Result<()> {
    let _one = lock(&CLAIMING);
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(folder.join(OWNER)) {
        Ok(mut file) => {
            file.write_all(owner.as_bytes())?;
            file.sync_all()?;
            fs::File::open(folder)?.sync_all()
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let other = owner_of(folder)?;
            if other == owner {
                return Ok(());
            }
            Err(io::Error::other(format!("the campaign is {other}'s")))
        }
        Err(error) => Err(error),
    }
}

fn owner_of(folder: &Path) -> io::Result<String> {
    fs::read_to_string(folder.join(OWNER))
}

/// Folder of the records of a node in a run, below another folder.
pub fn place(below: &Path, run: u32, node: u16) -> PathBuf {
    below.join(format!("run-{run:04}")).join(format!("node-{node:04}"))
}

/// Stored records of a node in a run of a campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The campaign's name.
    pub campaign: String,
    /// The run.
    pub run: u32,
    /// The node.
    pub node: u16,
    /// Owner of the records.
    pub owner: String,
    /// Total length of the files, bytes.
    pub bytes: u64,
    /// Modification time of the newest file, ns since 1970.
    pub modified_ns: i64,
}

/// The stored records of one campaign or of all. Foreign folders are skipped.
pub fn kept(only: Option<&Campaign>) -> Vec<Kept> {
    let mut found = Vec::new();
    for (campaign, folder) in entries(Path::new("."), PREFIX) {
        let Ok(named) = Campaign::named(&campaign) else { continue };
        if only.is_some_and(|one| *one != named) {
            continue;
        }
        let owner = named.owner().unwrap_or_default();
        for (run, of_run) in runs(&folder) {
            for (node, records) in entries(&of_run, "node-") {
                let Ok(node) = node.parse() else { continue };
                let (bytes, modified_ns) = weigh(&records);
                let (campaign, owner) = (campaign.clone(), owner.clone());
                found.push(Kept { campaign, run, node, owner, bytes, modified_ns });
            }
        }
    }
    found.sort_by(|a, b| (&a.campaign, a.run, a.node).cmp(&(&b.campaign, b.run, b.node)));
    found
}

/// Removes the folders of campaigns without records, which a killed agent has left.
pub fn tidy() {
    for (campaign, _) in entries(Path::new("."), PREFIX) {
        if let Ok(campaign) = Campaign::named(&campaign) {
            campaign.tidy();
        }
    }
}

fn runs(campaign: &Path) -> Vec<(u32, PathBuf)> {
    let named = |(run, path): (String, PathBuf)| Some((run.parse().ok()?, path));
    entries(campaign, "run-").into_iter().filter_map(named).collect()
}

/// Folders whose names begin with `prefix`, with the rest of the name.
fn entries(folder: &Path, prefix: &str) -> Vec<(String, PathBuf)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some((name.strip_prefix(prefix)?.to_owned(), entry.path()))
        })
        .take(MOST)
        .collect()
}

/// Total length of the files of a folder, and time of the newest.
fn weigh(folder: &Path) -> (u64, i64) {
    let Ok(entries) = fs::read_dir(folder) else { return (0, 0) };
    let files = entries.filter_map(Result::ok).filter_map(|entry| entry.metadata().ok());
    files.fold((0, 0), |(bytes, newest), file| {
        let since = file.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let at = since.and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or(0);
        (bytes + file.len(), newest.max(at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_campaign_has_32_digits_and_nothing_else() {
        let right = "0123456789abcdef0123456789abcdef";
        assert_eq!(Campaign::named(right).unwrap().folder(), PathBuf::from(format!("campaign-{right}")));
        for wrong in [
            "",
            "..",
            "0123",
            "0123456789ABCDEF0123456789ABCDEF",
            "../456789abcdef0123456789abcdef0",
            "0123456789abcdef0123456789abcde/",
        ] {
            let refused = Campaign::named(wrong).unwrap_err();
            assert!(refused.starts_with("the name of a campaign is 32 hexadecimal digits"), "{refused}");
        }
    }
    #[test]
    fn sessions_that_begin_side_by_side_agree_on_the_owner() {
        let below = std::env::temp_dir().join(format!("wiregauge-campaigns-{}", std::process::id()));
        fs::create_dir(&below).unwrap();
        for number in 0..200 {
            let folder = below.join(number.to_string());
            let claims = std::thread::scope(|scope| {
                let claim = || scope.spawn(|| claim(&folder, "operator"));
                [claim(), claim(), claim()].map(|one| one.join().unwrap())
            });
            assert!(claims.iter().all(Result::is_ok), "{claims:?}");
            let refused = claim(&folder, "somebody").unwrap_err().to_string();
            assert_eq!(refused, "the campaign is operator's");
        }
        fs::remove_dir_all(&below).unwrap();
    }
}
