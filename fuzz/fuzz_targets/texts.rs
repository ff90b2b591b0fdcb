//! Texts that clients give and that the board reads: ids, cursors, cron expressions and zones,
//! tags and names. Whatever they are, they are refused or the board stays whole. They are
//! separated by zero bytes.
#![no_main]

use board::*;
use board_fuzz::world;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut texts = bytes.split(|byte| *byte == 0);
    let mut text = || texts.next().unwrap_or_default();
    let mut w = world::World::default();
    if let Some(reached) = SelectionCursor::read(text()) {
        assert_eq!(SelectionCursor::read(reached.text().as_bytes()), Some(reached));
    }
    if let Some(cursor) = Cursor::read(text()) {
        assert_eq!(Cursor::read(cursor.text().as_bytes()), Some(cursor));
        w.board.list(&Page { from: Some(Start::At(cursor)), count: 9, ..Page::default() });
    }
    let (id, queue, name, tag, user, group, key) = (text(), text(), text(), text(), text(), text(), text());
    let unique = TakeKey { key, until: None, time: None, on_conflict: OnConflict::Reject };
    let named = |text: &&[u8]| (1..=255).contains(&text.len());
    let _ = w.post(&Post {
        id: Some(id).filter(named),
        queue: Some(queue).filter(named),
        name: Some(name).filter(|name| name.len() <= 255),
        tags: Some(vec![tag]).filter(|_| named(&tag)),
        user: Some(user).filter(named),
        group: Some(group).filter(named),
        unique: Some(unique).filter(|_| named(&key)),
        ..Post::default()
    });
    w.board.find(id);
    let (cron, zone) = (text(), text());
    if cron.len() <= CRON_LONGEST && zone.len() <= ZONE_LONGEST {
        let when = Some(When::Cron(cron));
        let zone = Some(zone).filter(|zone| !zone.is_empty());
        if w.set_schedule(&SetSchedule { id: b"s", when, zone, ..SetSchedule::default() }).is_ok() {
            w.now += 100_000_000;
            for _ in 0..5 {
                w.slice(3);
            }
            w.commit();
        }
    }
    w.is_valid();
});
