//! On whose behalf jobs are posted, and limits on posting.

use board::*;

use crate::site::*;
use crate::world::World;

const EVE: Option<&[u8]> = Some(b"eve");
const FAY: Option<&[u8]> = Some(b"fay");

/// A board with a job of eve's.
fn of_eve() -> World {
    let mut w = World::default();
    w.put_with("job", |p| p.user = EVE);
    w
}

#[test]
fn a_replacing_post_keeps_the_user_unless_it_names_another() {
    let mut w = of_eve();
    w.put_replacing("job", b"other");
    assert_eq!(w.job("job").user(), EVE);
    let exists = Exists::Replace;
    w.post(&Post { id: Some(b"job"), exists, user: FAY, ..Post::default() }).unwrap();
    assert_eq!(w.job("job").user(), FAY);
    w.reload();
    assert_eq!(w.job("job").user(), FAY);
    w.sound();
}

#[test]
fn a_child_has_the_user_of_its_schedule() {
    let mut w = World::default();
    let when = Some(When::Every(100));
    w.set_schedule(&SetSchedule { id: b"s", when, user: EVE, ..SetSchedule::default() }).unwrap();
    w.set_schedule(&SetSchedule { id: b"s", ..SetSchedule::default() }).unwrap();
    w.pass(100);
    assert_eq!(w.job("@s@1").user(), EVE);
}

#[test]
fn a_cancel_by_a_user_is_of_that_users_jobs_only() {
    let mut w = of_eve();
    w.put("nobodys");
    assert_eq!(w.cancel_by(b"job", false, FAY), Some(refused("NOTOWNER eve")));
    assert_eq!(w.cancel_by(b"nobodys", true, FAY), Some(refused("NOTOWNER -")));
    assert_eq!(w.is("job"), Some(Ready));
    assert_eq!(w.cancel_by(b"job", false, EVE), Some(Ok("cancelled")));
    assert_eq!(w.cancel_by(b"job", false, EVE), Some(Ok("already")));
    assert_eq!(w.cancel_by(b"job", false, FAY), Some(refused("NOTOWNER eve")));
}
