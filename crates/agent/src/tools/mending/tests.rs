use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// A host whose settings are texts in a table; those of `stubborn` cannot be set.
#[derive(Default)]
struct Planted {
    values: Mutex<BTreeMap<(String, String), String>>,
    stubborn: Option<&'static str>,
    /// A setting and the value that it takes instead of any other.
    rounds: Option<(&'static str, &'static str)>,
    boot: Mutex<String>,
    space: Mutex<String>,
}

impl Settings for Arc<Planted> {
    fn read(&self, setting: Setting, interface: &str) -> Result<String, String> {
        let values = self.values.lock().expect("nobody panicked");
        values.get(&(interface.into(), setting.to_string())).cloned().ok_or_else(|| "there is none".into())
    }

    fn write(&self, setting: Setting, interface: &str, value: &str) -> Result<(), String> {
        if self.stubborn == Some(setting.to_string().as_str()) {
            return Err("the driver refuses".into());
        }
        let value = match self.rounds {
            Some((name, value)) if name == setting.to_string() => value,
            _ => value,
        };
        self.set(interface, &setting.to_string(), value);
        Ok(())
    }

    fn await_link(&self, _: &str) {}

    fn filter_of_all(&self) -> String {
        "0".into()
    }

    fn place(&self, interface: &str) -> Result<Place, String> {
        let boot = self.boot.lock().expect("nobody panicked").clone();
        let space = self.space.lock().expect("nobody panicked").clone();
        match interface {
            "" => Ok(Place { boot, space, index: 0 }),
            "eth1" => Ok(Place { boot, space, index: 7 }),
            _ => Err(format!("there is no interface {interface}")),
        }
    }
}

impl Planted {
    fn value(&self, interface: &str, setting: &str) -> String {
        self.values.lock().expect("nobody panicked")[&(interface.into(), setting.into())].clone()
    }

    fn set(&self, interface: &str, setting: &str, value: &str) {
        self.values.lock().expect("nobody panicked").insert((interface.into(), setting.into()), value.into());
    }
}

struct Fixture {
    host: Arc<Planted>,
    folder: PathBuf,
}

impl Fixture {
    fn new(stubborn: Option<&'static str>) -> Self {
        let host = Arc::new(Planted { stubborn, ..Planted::default() });
        for (interface, setting, value) in [
            ("eth1", "feature rx-gro", "on"),
            ("eth1", "feature tx-tcp-segmentation", "on"),
            ("eth1", "eee", "on"),
            ("eth1", "rp_filter", "1"),
            ("", "rmem_max", "212992"),
            ("", "wmem_max", "33554432"),
        ] {
            host.set(interface, setting, value);
        }
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("wiregauge-mending-{}-{number}", std::process::id()));
        Self { host, folder }
    }

    /// An agent that was started anew has nothing but the folder.
    fn mending(&self) -> Mending {
        Mending {
            folder: self.folder.clone(),
            settings: Box::new(Arc::clone(&self.host)),
            audit: None,
            turn: Mutex::default(),
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn what_was_changed_is_restored_also_by_another_process() {
    let fixture = Fixture::new(None);
    let changes = fixture.mending().mend("eth1", &Fix::ALL, None, "test").expect("it can be kept");
    let changed: Vec<&str> = changes.iter().map(|change| change.setting.as_str()).collect();
    assert_eq!(
        changed,
        ["feature rx-gro", "feature tx-tcp-segmentation", "eee", "rp_filter", "rmem_max"],
        "the send buffer is large enough, and the driver has no coalescing"
    );
    assert_eq!(fixture.host.value("eth1", "rp_filter"), "2");
    assert!(fixture.mending().mend("eth1", &Fix::ALL, None, "test").expect("again").is_empty());
    let restored = fixture.mending().restore(Undo::All, "test").expect("it was kept");
    assert_eq!(restored.len(), changed.len());
    assert!(restored.iter().all(|change| change.refused.is_empty()), "{restored:?}");
    assert_eq!(fixture.host.value("eth1", "rp_filter"), "1");
    assert_eq!(fixture.host.value("", "rmem_max"), "212992");
    assert_eq!(fixture.mending().restore(Undo::All, "test").expect("nothing is left"), []);
}

#[test]
fn a_session_ends_with_its_own_changes() {
    let fixture = Fixture::new(None);
    let mending = fixture.mending();
    mending.mend("eth1", &[Fix::Eee], Some(b"one"), "test").expect("it can be kept");
    mending.mend("eth1", &[Fix::ReversePathFilter], None, "test").expect("it can be kept");
    assert_eq!(mending.restore(Undo::Ended { live: &[b"one".to_vec()] }, "test").expect("it was kept"), []);
    assert_eq!(mending.restore(Undo::Ended { live: &[] }, "test").expect("it was kept").len(), 1);
    assert_eq!(fixture.host.value("eth1", "eee"), "on");
    assert_eq!(fixture.host.value("eth1", "rp_filter"), "2");
}

#[test]
fn what_somebody_else_has_set_since_stays_theirs() {
    let fixture = Fixture::new(None);
    let mending = fixture.mending();
    mending.mend("eth1", &[Fix::ReversePathFilter], None, "test").expect("it can be kept");
    fixture.host.set("eth1", "rp_filter", "0");
    let restored = mending.restore(Undo::All, "test").expect("it was kept");
    assert_eq!(restored[0].refused, "somebody has set it to 0 since; it stays so");
    assert_eq!(fixture.host.value("eth1", "rp_filter"), "0");
    assert_eq!(mending.restore(Undo::All, "test").expect("it is forgotten"), []);
}

#[test]
fn what_a_driver_refuses_is_told_and_not_kept() {
    let fixture = Fixture::new(Some("eee"));
    let mending = fixture.mending();
    let changes =
        mending.mend("eth1", &[Fix::Eee, Fix::ReversePathFilter], None, "test").expect("it can be kept");
    assert_eq!((changes[0].refused.as_str(), changes[1].refused.as_str()), ("the driver refuses", ""));
    assert_eq!(mending.restore(Undo::All, "test").expect("it was kept").len(), 1);
    assert!(mending.mend("eth9", &[Fix::Eee], None, "test").is_err());
}

#[test]
fn what_a_driver_makes_of_a_value_is_read_back() {
    let mut fixture = Fixture::new(None);
    let rounding = |setting, value| {
        let values = fixture.host.values.lock().expect("nobody panicked").clone();
        let rounds = Some((setting, value));
        Arc::new(Planted { values: Mutex::new(values), rounds, ..Planted::default() })
    };
    let (rounded, idle) = (rounding("rmem_max", "8388000"), rounding("eee", "on"));
    fixture.host = rounded;
    let changes =
        fixture.mending().mend("eth1", &[Fix::SocketBuffers], None, "test").expect("it can be kept");
    assert_eq!((changes[0].after.as_str(), changes[0].refused.as_str()), ("8388000", ""));
    // It is told from what somebody else sets, although nobody asked for this value.
    let host = Arc::new(Planted {
        values: Mutex::new(fixture.host.values.lock().expect("nobody panicked").clone()),
        ..Planted::default()
    });
    fixture.host = host;
    let restored = fixture.mending().restore(Undo::All, "test").expect("it was kept");
    assert_eq!((restored[0].after.as_str(), restored[0].refused.as_str()), ("212992", ""));
    assert_eq!(fixture.host.value("", "rmem_max"), "212992");

    fixture.host = idle;
    let changes = fixture.mending().mend("eth1", &[Fix::Eee], None, "test").expect("it can be kept");
    assert_eq!(changes[0].refused, "the driver took off and left it at on");
    assert_eq!(fixture.mending().restore(Undo::All, "test").expect("nothing is left"), []);
}

#[test]
fn a_boot_restores_and_another_namespace_is_not_touched() {
    let fixture = Fixture::new(None);
    let mending = fixture.mending();
    mending.mend("eth1", &[Fix::Eee], None, "test").expect("it can be kept");
    *fixture.host.space.lock().expect("nobody panicked") = "net:[2]".into();
    let elsewhere = mending.restore(Undo::All, "test").expect("it was kept");
    assert!(elsewhere[0].refused.contains("another network namespace"), "{elsewhere:?}");
    assert_eq!(fixture.host.value("eth1", "eee"), "off");
    *fixture.host.boot.lock().expect("nobody panicked") = "second".into();
    assert_eq!(mending.restore(Undo::All, "test").expect("it was kept"), []);
    fs::write(fixture.folder.join(FILE), "{").expect("it can be damaged");
    assert!(
        mending.restore(Undo::All, "test").expect_err("it is damaged").to_string().contains("is damaged")
    );
}

#[test]
fn fixes_have_names() {
    assert_eq!(fixes_named(["eee", "pause"]), Ok(vec![Fix::Eee, Fix::Pause]));
    let refused = fixes_named(["sysctl"]).expect_err("it is none");
    assert!(refused.starts_with("there is no fix \"sysctl\"; there are offloads, "), "{refused}");
}
