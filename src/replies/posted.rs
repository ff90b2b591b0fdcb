//! The ids of posted jobs: written at once, or kept until the client gets its reply.

use crate::redis::reply::Reply;

/// Takes the reply to a post.
pub trait Ids {
    /// The reply is an array of this many ids.
    fn several(&mut self, n: usize);

    /// The id of a job.
    fn id(&mut self, id: &[u8]);

    /// Nothing was posted.
    fn none(&mut self);
}

impl Ids for Reply<'_> {
    fn several(&mut self, n: usize) {
        self.array(n);
    }

    fn id(&mut self, id: &[u8]) {
        self.bytes(id);
    }

    fn none(&mut self) {
        self.null();
    }
}

/// A reply to a post that is written later.
#[derive(Default)]
pub struct KeptIds {
    several: Option<usize>,
    ids: Vec<Option<Vec<u8>>>,
}

impl KeptIds {
    /// Writes the reply.
    pub fn write(&self, mut reply: Reply<'_>) {
        if let Some(n) = self.several {
            reply.several(n);
        }
        for id in &self.ids {
            match id {
                Some(id) => reply.id(id),
                None => reply.none(),
            }
        }
    }
}

impl Ids for KeptIds {
    fn several(&mut self, n: usize) {
        self.several = Some(n);
    }

    fn id(&mut self, id: &[u8]) {
        self.ids.push(Some(id.to_vec()));
    }

    fn none(&mut self) {
        self.ids.push(None);
    }
}
