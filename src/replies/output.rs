//! The reply of `JOB.OUTPUT`.

use board::Board;

use crate::redis::reply::Reply;

/// Writes up to `count` chunks of a job behind the first `since`; null when it has no record.
pub fn write_output(reply: Reply, board: Option<&Board>, id: &[u8], since: u64, count: usize) {
    let found = board.and_then(|board| Some((board, board.find(id)?)));
    let Some((board, slot)) = found else { return reply.null() };
    let Some(record) = board.record_of(slot) else { return reply.null() };
    let unread = board.output_since(slot, since, count);
    reply.map(6);
    let numbers = [
        ("next", unread.next as i64),
        ("missed", unread.missed as i64),
        ("anew", unread.anew.into()),
        ("attempt", unread.attempt.into()),
    ];
    for (name, number) in numbers {
        reply.text(name);
        reply.int(number);
    }
    reply.text("state");
    reply.text(record.state().name());
    reply.text("chunks");
    reply.array(unread.chunks.len());
    unread.chunks.into_iter().for_each(|chunk| reply.bytes(chunk));
}
