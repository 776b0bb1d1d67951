//! Whether something was built after its sources were last changed, so that a second run starts at once.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Is `output` there, and newer than every file and folder in `inputs`? A folder changes when a file in it goes.
pub fn is_fresh(output: &Path, inputs: &[PathBuf]) -> bool {
    match changed(output) {
        Some(built) => inputs.iter().all(|input| is_older(input, built)),
        None => false,
    }
}

fn is_older(path: &Path, than: SystemTime) -> bool {
    let Ok(entries) = path.read_dir() else {
        // A file, or nothing: what is not there is not newer.
        return changed(path).is_none_or(|time| time < than);
    };
    changed(path).is_some_and(|time| time < than)
        && entries
            .into_iter()
            .all(|entry| entry.is_ok_and(|entry| is_older(&entry.path(), than)))
}

fn changed(path: &Path) -> Option<SystemTime> {
    path.metadata()
        .and_then(|metadata| metadata.modified())
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::time::Duration;

    fn at(path: &Path, seconds: u64) {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        File::open(path).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn the_newest_file_at_any_depth_counts_and_so_does_a_file_that_went() {
        let place = std::env::temp_dir().join(format!("xtask-fresh-{}", std::process::id()));
        let (sources, inner, source, output) = (
            place.join("src"),
            place.join("src/inner"),
            place.join("src/inner/a"),
            place.join("out"),
        );
        fs::create_dir_all(&inner).unwrap();
        File::create(&source).unwrap();
        let inputs = [sources.clone(), place.join("absent")];
        assert!(!is_fresh(&output, &inputs), "nothing was built yet");

        File::create(&output).unwrap();
        for path in [&sources, &inner, &source] {
            at(path, 100);
        }
        at(&output, 200);
        assert!(is_fresh(&output, &inputs));
        at(&source, 300);
        assert!(!is_fresh(&output, &inputs), "a source is newer");
        fs::remove_file(&source).unwrap();
        assert!(!is_fresh(&output, &inputs), "a source went");
        fs::remove_dir_all(&place).unwrap();
    }
}
