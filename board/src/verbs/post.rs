//! Posting: a job comes onto the board.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_bytes::Bytes;

use crate::apart::Apart;
use crate::bin::Bin;
use crate::board::Board;
use crate::effect::{is_name, Meta, Sound, Unfit};
use crate::env::Env;
use crate::error::Refusal;
use crate::history::{Entry, Event};
use crate::id::{self, Id};
use crate::job::{End, Job, Options, Rare, State, U48};
use crate::keys::{Unique, Until};
use crate::labels::are_tags;
use crate::limits::{rare_bytes, Coming, Growth, RECORD};
use crate::news::Fact;
use crate::settings::Setting;
use crate::stats::Tally;
use crate::verbs::depend::After;
use crate::waits::Edge;

/// What to do when the id is taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Exists {
    /// Refuse.
    #[default]
    Refuse,
    /// Do nothing.
    Skip,
    /// Take its place; do nothing when it is free.
    OnlyReplace,
    /// Take its place.
    Replace,
}

/// A request to post.
#[derive(Debug, Clone, Default)]
pub struct Post<'a> {
    /// The client's id, or the server makes one.
    pub id: Option<&'a [u8]>,
    /// When that id is taken.
    pub exists: Exists,
    /// Opaque bytes.
    pub payload: &'a [u8],
    /// The job's type.
    pub name: Option<&'a [u8]>,
    /// Lane; `default` when not named.
    pub queue: Option<&'a [u8]>,
    /// Higher first.
    pub priority: Option<i32>,
    /// Not before this time, Unix ms.
    pub due: Option<i64>,
    /// Attributes with defaults in the settings.
    pub options: Options,
    /// Fields of the user's own.
    pub meta: Meta<'a>,
    /// What it waits for.
    pub after: Option<After<'a>>,
    /// With whom it shares its turns.
    pub group: Option<&'a [u8]>,
    /// On whose behalf.
    pub user: Option<&'a [u8]>,
    /// Its tags.
    pub tags: Option<Vec<&'a [u8]>>,
    /// The job that it is a part of, by id: see [`Board::adopt`].
    pub parent: Option<&'a [u8]>,
    /// Its weight among that job's children.
    pub share: Option<u32>,
    /// So many live jobs of that user and name at most; needs a user.
    pub most_live: Option<i64>,
    /// The key that it takes.
    pub unique: Option<TakeKey<'a>>,
}

impl Post<'_> {
    /// Whether it has any of [`More`].
    fn has_more(&self) -> bool {
        let Post { meta, after, user, tags, unique, .. } = self;
        !meta.is_empty() || after.is_some() || user.is_some() || tags.is_some() || unique.is_some()
    }
}

/// What to do when another job holds the key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// Refuse.
    #[default]
    Reject,
    /// Post nothing, and tell the holder's id.
    Return,
    /// Take the holder's place while nobody has claimed it; its due time and its place in line
    /// stay.
    Replace,
    /// The same, but its delay starts afresh.
    Debounce,
}

/// A request to take a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakeKey<'a> {
    /// The key.
    pub key: &'a [u8],
    /// When it is free again; see [`crate::Unique`].
    pub until: Option<Until>,
    /// Free after so many ms.
    pub time: Option<i64>,
    /// When another job holds it.
    pub on_conflict: OnConflict,
}

/// What a post comes to.
// It lives on the stack for one decision; a box would cost an allocation for each.
#[allow(clippy::large_enum_variant)]
pub enum PostAnswer<'a> {
    /// This is to be applied. Its id is [`Posted::text`].
    Do(Posted<'a>),
    /// Nothing happens: NX and the id is taken, or XX and it is free.
    Skip,
    /// Nothing happens: the job of this id holds the key.
    Holds(Id<Bin>),
}

/// A job came, or took the place of the one with its id: then attributes that are not named
/// stay, and everything else begins afresh.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Posted<'a> {
    slot: u32,
    replaces: bool,
    #[serde(with = "serde_bytes")]
    made: Option<[u8; 16]>,
    #[serde(borrow, with = "serde_bytes")]
    id: Cow<'a, [u8]>,
    #[serde(borrow, with = "serde_bytes")]
    payload: &'a [u8],
    #[serde(borrow, with = "serde_bytes")]
    queue: Option<&'a [u8]>,
    #[serde(borrow, with = "serde_bytes")]
    name: Option<&'a [u8]>,
    #[serde(borrow, with = "serde_bytes")]
    group: Option<&'a [u8]>,
    priority: Option<i32>,
    due: Option<i64>,
    options: Option<Options>,
    /// What few jobs have: most neither carry it nor write it down.
    #[serde(borrow)]
    more: Option<Box<More<'a>>>,
}

/// The rare attributes of a post.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct More<'a> {
    #[serde(borrow)]
    meta: Meta<'a>,
    after: Option<Vec<Edge>>,
    #[serde(borrow, with = "serde_bytes")]
    user: Option<&'a [u8]>,
    #[serde(borrow)]
    tags: Option<Vec<&'a Bytes>>,
    unique: Option<KeyTaken<'a>>,
}

/// The key that a post takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeyTaken<'a> {
    #[serde(borrow, with = "serde_bytes")]
    key: &'a [u8],
    until: Option<Until>,
    time: Option<i64>,
    /// The holder keeps the key as it had it, its due time and its place in line.
    keeps: bool,
}

impl KeyTaken<'_> {
    fn owned(&self) -> Unique {
        Unique::new(self.key, self.until, self.time)
    }
}

/// The queue of jobs that name none.
pub const DEFAULT_QUEUE: &[u8] = b"default";

impl Sound for Posted<'_> {
    fn sound(&self, board: &Board) -> bool {
        let id = match &self.made {
            Some(bytes) => id::slot_of(bytes) == self.slot,
            None => is_name(&self.id),
        };
        let free = || self.text(|id| board.find(id).is_none());
        id && self.queue.is_none_or(is_name)
            && self.name.is_none_or(|name| name.len() <= 255)
            && self.options.is_none_or(|o| o.sound())
            && self.group.is_none_or(is_name)
            && (self.replaces || free())
            && self.more.as_ref().is_none_or(|more| {
                let More { meta: _, after, user, tags, unique } = &**more;
                user.is_none_or(is_name)
                    && unique.as_ref().is_none_or(|k| k.owned().sound() && (self.replaces || !k.keeps))
                    && tags.as_ref().is_none_or(|tags| are_tags(tags.iter().map(|tag| &***tag)))
                    && after.as_ref().is_none_or(|edges| board.sound_edges(self.slot, &[], edges))
            })
    }
}

impl Posted<'_> {
    /// Calls `f` with the job's id as clients see it.
    pub fn text<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        self.full_id().text(f)
    }

    pub(crate) fn slot(&self) -> u32 {
        self.slot
    }

    fn unique(&self) -> Option<&KeyTaken<'_>> {
        self.more.as_ref()?.unique.as_ref()
    }

    fn full_id(&self) -> Id<&[u8]> {
        match self.made {
            Some(bytes) => Id::Made(bytes),
            None => Id::Named(&self.id),
        }
    }

    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), Unfit> {
        let ended = self.replaces && board.job(self.slot)?.state.ended();
        let kept = self.kept(board)?;
        let revision = board.revision() as i64;
        if self.replaces {
            self.begin_afresh(board, now, kept.is_some())?;
        } else {
            let queue = self.queue.unwrap_or(DEFAULT_QUEUE);
            let options = self.options.unwrap_or_default();
            let class = board.hold_class(queue, self.name.unwrap_or_default(), options);
            let group = self.group.map(|name| board.hold_group_of(class, name)).transpose()?;
            let mut job = Job::new(self.full_id(), self.payload, class, self.priority.unwrap_or(0), group);
            let ageing = board.ageing(board.queue_number(&job));
            if ageing > 0 {
                job.set_ageing(ageing);
            }
            (job.posted, job.seq) = (U48::new(now), U48::new(revision));
            board.add_record(self.slot, job)?;
        }
        let tally = if self.replaces { Tally::Replaced } else { Tally::Posted };
        board.note_of(self.slot, tally, now);
        let more = self.more.as_deref();
        if let Some(More { meta, user, .. }) = more.filter(|m| !m.meta.is_empty() || m.user.is_some()) {
            board.reweigh(self.slot, |job| {
                let rare = job.rare_mut();
                rare.set_meta(meta.iter().map(|(f, v)| (&***f, &***v)));
                rare.user = user.map(Bin::from).or(rare.user.take());
                Ok(())
            })?;
        }
        if self.replaces {
            board.set_seq(self.slot, revision)?;
            let job = board.job_mut(self.slot)?;
            job.posted = U48::new(now);
            job.seq = U48::new(revision);
            job.since = kept.map_or(U48::new(0), |(since, _)| since);
        }
        if let Some(tags) = more.and_then(|more| more.tags.as_ref()) {
            let tracked = board.labels.tracked(self.slot);
            board.mark(self.slot, tags.iter().map(|tag| &***tag), tracked)?;
        }
        board.enlist(self.slot)?;
        if kept.is_none() && (self.replaces || more.is_some()) {
            if let Some(unique) = self.unique() {
                board.reweigh(self.slot, |job| {
                    job.rare_mut().unique = Some(Box::new(unique.owned()));
                    Ok(())
                })?;
            }
            board.take_key(self.slot, now)?;
        }
        if let Some(edges) = more.and_then(|more| more.after.as_ref()) {
            board.reattach(self.slot, edges, now)?;
        }
        let due = kept.map_or(self.due, |(_, due)| due).filter(|due| *due > now);
        board.tell_post(self.slot, due, |facts| {
            facts.extend(self.replaces.then_some(Fact::Flag("replaced", true)));
        });
        match due {
            Some(due) => board.make_scheduled(self.slot, due, now)?,
            _ => board.make_ready(self.slot, now)?,
        }
        match self.replaces {
            true => board.begin_in_family(self.slot, ended, now),
            false => Ok(()),
        }
    }

    /// What limits have to allow; `bounded` when live jobs of its user are.
    fn coming<'p>(&'p self, board: &'p Board, bounded: bool) -> Coming<'p> {
        let old = board.jobs.get(self.slot).filter(|_| self.replaces);
        let more = self.more.as_deref();
        let meta = more.map_or(0, |more| more.meta.iter().map(|(f, v)| f.len() + v.len() + 32).sum());
        let user = more.and_then(|more| more.user);
        let bytes = match old {
            Some(job) => board.weight(job) - job.payload().len() + self.payload.len() + meta,
            None => {
                let key = self.unique().map_or(0, |unique| unique.owned().bytes());
                let edges = more.and_then(|more| more.after.as_deref()).map_or(0, std::mem::size_of_val);
                let rare = rare_bytes(meta + key + edges + user.map_or(0, <[u8]>::len));
                let id = self.made.map_or(1 + self.id.len(), |id| id.len());
                RECORD + id + 4 * usize::from(self.group.is_some()) + self.payload.len() + rare
            }
        };
        let name = || self.name.or_else(|| Some(&*board.class_of(old?)?.name)).unwrap_or_default();
        Coming {
            old: old.map(|_| self.slot),
            queue: self.queue.unwrap_or_else(|| old.map_or(DEFAULT_QUEUE, |job| board.queue_name(job))),
            group: self.group.or_else(|| board.group_name(old?)),
            bytes,
            owner: user.filter(|_| bounded).map(|user| (user, name())),
        }
    }

    /// Place in line and due time of a holder that keeps both.
    fn kept(&self, board: &Board) -> Result<Option<(U48, Option<i64>)>, Unfit> {
        if !self.unique().is_some_and(|unique| unique.keeps) {
            return Ok(None);
        }
        let job = board.job(self.slot)?;
        match job.state {
            State::Ready => Ok(Some((job.since, None))),
            State::Scheduled | State::Blocked => Ok(Some((job.since, Some(job.at.get())))),
            _ => Err(Unfit),
        }
    }

    fn begin_afresh(&self, board: &mut Board, now: i64, keeps: bool) -> Result<(), Unfit> {
        if !keeps {
            board.free_key(self.slot);
        }
        if let Some(claim) = board.leave(self.slot)? {
            board.tell_lost(self.slot, &claim, "replaced");
            board.write_end(self.slot, claim, End::Taken, now)?;
        }
        board.delist(self.slot)?;
        board.record(self.slot, Entry { at: now, event: Event::Replaced, worker: None, text: None })?;
        board.reweigh(self.slot, |job| {
            job.set_payload(self.payload);
            if let Some(priority) = self.priority {
                job.priority = priority;
            }
            let rare = job.rare_mut();
            *rare = Rare {
                meta: std::mem::take(&mut rare.meta),
                history: std::mem::take(&mut rare.history),
                last: rare.last.take(),
                modified: now,
                after: std::mem::take(&mut rare.after),
                awaited: rare.awaited,
                user: rare.user.take(),
                family: rare.family.take(),
                unique: rare.unique.take(),
                tried: if keeps { std::mem::take(&mut rare.tried) } else { Apart::default() },
                ..Rare::default()
            };
            if let Some(last) = &mut rare.last {
                last.end = End::Taken;
            }
            if let Some(tried) = rare.tried.there() {
                tried.stale = Vec::new();
            }
            Ok(())
        })?;
        board.reclass(self.slot, self.queue, self.name, self.options.unwrap_or_default())?;
        if let Some(name) = self.group {
            board.regroup(self.slot, name)?;
        }
        board.renew_ageing(self.slot)
    }
}

impl Board {
    /// Decides a post. `n` counts the posts of one command. O(1), and O(log keys) with a key.
    pub fn post<'a>(&self, env: &Env<'_>, post: &Post<'a>, n: u64) -> Result<PostAnswer<'a>, Refusal> {
        let answer = self.post_unbounded(env, post, n)?;
        if self.is_bounded(post) {
            let mut growth = Growth::default();
            self.grow(&mut growth, post, &answer);
            self.check_posts(&growth, post)?;
        }
        Ok(answer)
    }

    /// Decides a post without a look at limits: for one of several that [`Board::check_posts`]
    /// has let pass together.
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
            let held = self.holder_of(key.key, env.now);
            if let Some((id, slot)) = held.filter(|(_, slot)| slot.is_none() || *slot != taken) {
                let waits = |slot: &u32| self.jobs.get(*slot).is_some_and(|job| job.state < State::Claimed);
                match (key.on_conflict, slot.filter(waits)) {
                    (OnConflict::Return, _) => return Ok(PostAnswer::Holds(id.clone())),
                    (OnConflict::Replace | OnConflict::Debounce, Some(slot)) if taken.is_none() => {
                        (taken, holder) = (Some(slot), Some(id));
                        keeps = key.on_conflict == OnConflict::Replace;
                    }
                    _ => return Err(Refusal::exists(id)),
                }
            }
        } else if let Some(unique) = taken.and_then(|slot| self.unique(slot)) {
            self.check_key(&unique.key, taken, env.now)?;
        }
        if let Some(slot) = taken {
            self.check_meta(slot, &post.meta)?;
        }
        let slot = taken.unwrap_or_else(|| self.jobs.next_free());
        let after = match &post.after {
            Some(after) => {
                let edges = self.decide_edges(env, slot, post.id, after)?;
                self.check_edge_count(&[], &edges)?;
                Some(edges)
            }
            None => None,
        };
        let mut options = (post.options != Options::default()).then_some(post.options);
        if taken.is_none() && post.options.expire.is_none() {
            let queue = self.queues.find(post.queue.unwrap_or(DEFAULT_QUEUE)).unwrap_or(u32::MAX);
            let expire = self.rule(Setting::Expire, queue, env.rules);
            if expire > 0 {
                options.get_or_insert_default().expire = Some(expire);
            }
        }
        let made = match (post.id, taken) {
            (None, None) => Some(id::make(env.now, env.draw(n), slot, self.revision())),
            (_, Some(slot)) => match self.jobs.get(slot).map(Job::id) {
                Some(Id::Made(bytes)) => Some(bytes),
                _ => None,
            },
            _ => None,
        };
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
                    user: post.user,
                    tags: post.tags.as_ref().map(|tags| tags.iter().map(|tag| Bytes::new(tag)).collect()),
                    unique: post.unique.map(|key| {
                        let TakeKey { key, until, time, .. } = key;
                        KeyTaken { key, until, time, keeps }
                    }),
                })
            }),
        }))
    }

    /// Adds to `growth` what a post would add.
    pub fn grow(&self, growth: &mut Growth, post: &Post<'_>, answer: &PostAnswer<'_>) {
        if let PostAnswer::Do(posted) = answer {
            growth.adds(self, &posted.coming(self, post.most_live.is_some()));
        }
    }

    /// Refuses posts that share their options when they would exceed a limit. O(1) for those of
    /// one queue.
    pub fn check_posts(&self, growth: &Growth, post: &Post<'_>) -> Result<(), Refusal> {
        self.check_growth(growth, post.user.zip(post.most_live))
    }

    /// Whether a limit has to be looked at before a post.
    pub fn is_bounded(&self, post: &Post<'_>) -> bool {
        self.bounded || post.most_live.is_some()
    }

    /// Whether a job of that id is on the board in a state other than ended.
    pub fn state_of(&self, id: &[u8]) -> Option<State> {
        self.jobs.get(self.find(id)?).map(|job| job.state)
    }
}

/// A pair of a META option.
pub fn pair<'a>(field: &'a [u8], value: &'a [u8]) -> (&'a Bytes, &'a Bytes) {
    (Bytes::new(field), Bytes::new(value))
}
