//! Posting: a job is added to the board.

use crate::job::DEFAULT_QUEUE;
use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::board::Board;
use crate::effect::Meta;
use crate::env::Env;
use crate::error::Refusal;
use crate::job::gate::Gate;
use crate::job::id::Id;
use crate::job::unique_key::Until;
use crate::job::{Costs, Options, State};
use crate::quotas::{Coming, Growth};
use crate::settings::Setting;
use crate::structures::byte_string::ByteString;
use crate::verbs::depend::After;
use crate::verbs::posted::{KeyTaken, More, Posted};

/// What to do when the id is taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Exists {
    /// Refuse.
    #[default]
    Refuse,
    /// Do nothing.
    Skip,
    /// Replace the job; do nothing when the id is free.
    OnlyReplace,
    /// Replace the job.
    Replace,
}

/// A request to post.
#[derive(Debug, Clone, Default)]
pub struct Post<'a> {
    /// The client's id; otherwise the server makes one.
    pub id: Option<&'a [u8]>,
    /// What to do when that id is taken.
    pub exists: Exists,
    /// The payload, opaque bytes.
    pub payload: &'a [u8],
    /// Its name, the type of the job.
    pub name: Option<&'a [u8]>,
    /// Its queue; `default` when not named.
    pub queue: Option<&'a [u8]>,
    /// Its priority; higher ones are claimed first.
    pub priority: Option<i32>,
    /// The job is not ready before this time, Unix ms.
    pub due: Option<i64>,
    /// Options with defaults in the settings.
    pub options: Options,
    /// What a claim takes from single limits.
    pub costs: Option<Costs<'a>>,
    /// The user's own fields.
    pub meta: Meta<'a>,
    /// The jobs that it waits for.
    pub after: Option<After<'a>>,
    /// The signals that must arrive before it runs.
    pub gate: Option<Box<Gate>>,
    /// Its group.
    pub group: Option<&'a [u8]>,
    /// The user on whose behalf it is posted.
    pub user: Option<&'a [u8]>,
    /// Its tags.
    pub tags: Option<Vec<&'a [u8]>>,
    /// The id of its parent.
    pub parent: Option<&'a [u8]>,
    /// Whether its flow may still add children to it; [`crate::Flow`] knows.
    pub open: bool,
    /// Ids that jobs of the same request choose; [`crate::Flow`] knows.
    pub beside: Option<&'a BTreeSet<&'a [u8]>>,
    /// Its weight among the children of its parent.
    pub share: Option<u32>,
    /// The most live jobs of this user and name; needs a user.
    pub most_live: Option<i64>,
    /// The unique key that it takes.
    pub unique: Option<TakeKey<'a>>,
}

impl Post<'_> {
    /// Whether it has any of [`More`].
    fn has_more(&self) -> bool {
        let Post { meta, after, gate, user, tags, unique, parent, costs, .. } = self;
        let given = [
            costs.is_some(),
            after.is_some(),
            user.is_some(),
            tags.is_some(),
            unique.is_some(),
            parent.is_some(),
        ];
        !meta.is_empty() || gate.is_some() || given.contains(&true)
    }
}

/// What to do when another job holds the unique key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// Refuse.
    #[default]
    Reject,
    /// Post nothing, and return the holder's id.
    Return,
    /// Replace the holder while nobody has claimed it; its due time and its place in line stay.
    Replace,
    /// The same, but start its delay again.
    Debounce,
}

/// A request to take a unique key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakeKey<'a> {
    /// The key.
    pub key: &'a [u8],
    /// What frees the key; see [`crate::Unique`].
    pub until: Option<Until>,
    /// How long the key is held at most, ms.
    pub time: Option<i64>,
    /// What to do when another job holds it.
    pub on_conflict: OnConflict,
}

/// The outcome of a post.
// It is on the stack for one decision; a box would cost an allocation for each.
#[allow(clippy::large_enum_variant)]
pub enum PostAnswer<'a> {
    /// The caller must apply this. Its id is [`Posted::text`].
    Do(Posted<'a>),
    /// Nothing happens: NX and the id is taken, or XX and it is free.
    Skip,
    /// Nothing happens: the job with this id holds the key.
    Holds(Id<ByteString>),
}

impl Board {
    /// Decides a post. `n` counts the posts of one command. O(1), and O(log keys) with a key.
    pub fn post<'a>(&self, env: &Env<'_>, post: &Post<'a>, n: u64) -> Result<PostAnswer<'a>, Refusal> {
        // Returned as it is: a `?` would move the whole answer.
        let answer = self.post_unbounded(env, post, n);
        if let (true, Ok(answer)) = (self.is_bounded(post), &answer) {
            let mut growth = Growth::default();
            self.grow(&mut growth, post, answer);
            self.check_posts(&growth, post, 1)?;
        }
        answer
    }

    /// Decides a post without a check of limits: for one of several posts that
    /// [`Board::check_posts`] has accepted together.
    pub fn post_unbounded<'a>(
        &self,
        env: &Env<'_>,
        post: &Post<'a>,
        n: u64,
    ) -> Result<PostAnswer<'a>, Refusal> {
        let taken = post.id.and_then(|id| self.find(id));
        let remembered = || post.id.is_some_and(|id| self.tombstone(id, env.now).is_some());
        let exists = || Refusal::Exists(post.id.unwrap_or_default().into());
        match (post.exists, taken) {
            (Exists::Refuse, Some(_)) => return Err(exists()),
            (Exists::Refuse, None) if remembered() => return Err(exists()),
            (Exists::Skip, Some(_)) | (Exists::OnlyReplace, None) => return Ok(PostAnswer::Skip),
            (Exists::Skip, None) if remembered() => return Ok(PostAnswer::Skip),
            _ => {}
        }
        let (mut taken, mut holder, mut keeps) = (taken, None, false);
        if let Some(key) = &post.unique {
            self.check_new_keys(usize::from(self.is_new_key(key.key)))?;
            let held = self.holder_of(key.key, env.now);
            if let Some((id, slot)) = held.filter(|(_, slot)| slot.is_none() || *slot != taken) {
                let waits =
                    |slot: &u32| self.store.jobs.get(*slot).is_some_and(|job| job.state < State::Claimed);
                match (key.on_conflict, slot.filter(waits)) {
                    (OnConflict::Return, _) => return Ok(PostAnswer::Holds(id.clone())),
                    (OnConflict::Replace | OnConflict::Debounce, Some(slot)) if taken.is_none() => {
                        (taken, holder) = (Some(slot), Some(id));
                        keeps = key.on_conflict == OnConflict::Replace;
                    }
                    _ => return Err(Refusal::exists(id)),
                }
            }
        } else if let Some(slot) = taken {
            self.check_own_key(slot, env.now)?;
        }
        if let Some(slot) = taken {
            self.check_meta(slot, &post.meta)?;
            self.count_edges(slot)?;
        }
        let costs = post.costs.as_ref().map(|costs| self.checked_costs(costs)).transpose()?;
        let slot = taken.unwrap_or_else(|| self.store.jobs.next_free());
        let after = match &post.after {
            Some(after) => {
                let parent = post.parent.and_then(|id| self.find(id));
                let edges = self.decide_edges(env, slot, post.id, after, parent)?;
                self.check_edge_count(&[], &edges)?;
                Some(edges)
            }
            None => {
                if let (Some(slot), Some(id)) = (taken, post.parent) {
                    self.check_kept(slot, self.find(id))?;
                }
                None
            }
        };
        let mut options = (post.options != Options::default()).then_some(post.options);
        let queue = self.queues.find(post.queue.unwrap_or(DEFAULT_QUEUE));
        if taken.is_none() || post.queue.is_some() {
            self.check_queue_at(queue)?;
        }
        if taken.is_none() && post.options.expire.is_none() {
            let expire = self.queue_rule(Setting::Expire, queue, env.rules);
            if expire > 0 {
                options.get_or_insert_default().expire = Some(expire);
            }
        }
        let made = match (post.id, taken) {
            (None, None) => Some(self.new_id(env, slot, n, post.beside.unwrap_or(&BTreeSet::new()))),
            (_, Some(slot)) => match self.id(slot) {
                Some(Id::Made(bytes)) => Some(bytes),
                _ => None,
            },
            _ => None,
        };
        let adopted = post.parent.map(|parent| self.adopt(slot, parent, post.share)).transpose()?;
        let id = match holder {
            Some(Id::Named(name)) => Cow::Owned(name.to_vec()),
            _ => Cow::Borrowed(post.id.unwrap_or_default()),
        };
        Ok(PostAnswer::Do(Posted {
            slot,
            replaces: taken.is_some(),
            made,
            id,
            payload: post.payload,
            queue: post.queue,
            name: post.name,
            priority: post.priority,
            due: post.due,
            options,
            group: post.group,
            more: post.has_more().then(|| {
                Box::new(More {
                    meta: post.meta.clone(),
                    after,
                    children: post.after.as_ref().and_then(|after| after.children),
                    open: post.open,
                    gate: post.gate.clone(),
                    costs,
                    user: post.user,
                    tags: post.tags.clone(),
                    unique: post.unique.map(|key| {
                        let TakeKey { key, until, time, .. } = key;
                        KeyTaken { key, until, time, keeps }
                    }),
                    parent: adopted.map(|adopted| (adopted.parent, adopted.share)),
                })
            }),
        }))
    }

    /// Adds to `growth` what a post would add.
    pub fn grow(&self, growth: &mut Growth, post: &Post<'_>, answer: &PostAnswer<'_>) {
        if let PostAnswer::Do(posted) = answer {
            growth.adds(self, &posted.coming(self, post.most_live.is_some(), false));
        }
    }

    /// Adds to `growth` what a post would add if it replaced nothing.
    pub fn grow_whole(&self, growth: &mut Growth, post: &Post<'_>, answer: &PostAnswer<'_>) {
        if let PostAnswer::Do(posted) = answer {
            let coming = posted.coming(self, post.most_live.is_some(), false);
            growth.adds(self, &Coming { old: None, ..coming });
        }
    }

    /// Refuses `n` posts that share their options when they would exceed a limit. O(1) for posts to
    /// one queue.
    pub fn check_posts(&self, growth: &Growth, post: &Post<'_>, n: usize) -> Result<(), Refusal> {
        if let Some((id, parent)) = post.parent.and_then(|id| Some((id, self.find(id)?))) {
            self.check_shares(parent, n - 1).map_err(|refusal| refusal.of(id))?;
        }
        self.check_growth(growth, post.user.zip(post.most_live))
    }

    /// Whether limits must be checked before a post.
    pub fn is_bounded(&self, post: &Post<'_>) -> bool {
        self.is_limited() || post.most_live.is_some()
    }

    /// The state of the job with this id; `None` when it has no record.
    pub fn state_of(&self, id: &[u8]) -> Option<State> {
        self.store.jobs.get(self.find(id)?).map(|job| job.state)
    }
}

/// A pair of a META option.
pub fn pair<'a>(field: &'a [u8], value: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    (field, value)
}
