//! `JOB.CLAIM`: a worker takes jobs or waits for some; also as the CLAIM of a verb that ends work.

use board::{Claim as Request, Fields, Order, Protocol, Subject, ANYBODY, CLAIM_FIELDS, LONGEST};

use smallvec::{smallvec, SmallVec};

use super::{reference, Command, KeyUse, Spec};
use crate::commands::args::{flag, once, Args, Keyword, Queues};
use crate::commands::call::Call;
use crate::commands::shape::Asked;
use crate::config::config;
use crate::redis::ctx::Ctx;
use crate::replies::endings::{begin, Ending};
use crate::replies::errors::{syntax, unexpected, CommandError, Done};
use crate::replies::fitting::Room;
use crate::replies::records::write_records;
use crate::runtime::batch_queue::{Batch, Name};
use crate::runtime::blocked_claims::park;
use crate::runtime::claim_queue::Wait;
use crate::runtime::commit::Commit;
use crate::runtime::world;

/// `JOB.CLAIM` → records, or a null array. Replicates `Claimed` for each job, and `Beaten` for each
/// job that SEEN returns. Settles up to 64 overdue things first.
pub struct Claim;

/// Most claims are for one job, and need no allocation for its number.
type Slots = SmallVec<[u32; 4]>;

/// The error in a script, for example.
pub(super) const NO_CONNECTION: &str = "SESSION needs a connection of its own, which a script does not have";

#[derive(Default)]
struct Options<'a> {
    id: Option<&'a [u8]>,
    queues: Option<Queues<'a>>,
    order: Option<Order>,
    count: Option<usize>,
    lease: Option<i64>,
    least: Option<usize>,
    linger: Option<i64>,
    block: Option<i64>,
    seen: Option<u64>,
    asked: Asked,
    session: bool,
}

/// Reads the options of a claim, up to the end.
fn options<'a>(args: &mut Args<'a>, o: &mut Options<'a>) -> Done {
    while let Some(word) = args.next() {
        match Keyword::of(word).text() {
            "ID" => once(&mut o.id, "ID", args.name("ID")?)?,
            "ORDER" => once(&mut o.order, "ORDER", order(args)?)?,
            "COUNT" => once(&mut o.count, "COUNT", args.length("COUNT", 1)?)?,
            "MIN" => once(&mut o.least, "MIN", args.length("MIN", 1)?)?,
            "LINGER" => once(&mut o.linger, "LINGER", args.ms("LINGER", 1..=LONGEST)?)?,
            "LEASE" => once(&mut o.lease, "LEASE", args.ms("LEASE", 1..=LONGEST)?)?,
            "BLOCK" => once(&mut o.block, "BLOCK", args.ms("BLOCK", 0..=LONGEST)?)?,
            "SEEN" => once(&mut o.seen, "SEEN", args.token("SEEN")?)?,
            "SESSION" => flag(&mut o.session, "SESSION")?,
            other if o.asked.take(other, args)? => {}
            other if args.queues(other, &mut o.queues)? => {}
            _ => return unexpected(word),
        }
    }
    let alone = o.queues.is_none() && o.order.is_none() && o.count.is_none() && o.least.is_none();
    if o.id.is_some() && !(alone && o.block.is_none() && o.seen.is_none() && o.linger.is_none()) {
        return syntax("ID excludes QUEUE, QUEUES, ORDER, COUNT, MIN, LINGER, BLOCK and SEEN");
    }
    match o.least {
        Some(least) if least > o.count.unwrap_or(1) => syntax("MIN must not be above COUNT"),
        None if o.linger.is_some() => syntax("LINGER needs MIN"),
        _ => Ok(()),
    }
}

fn order(args: &mut Args<'_>) -> Result<Order, CommandError> {
    match Keyword::of(args.value("ORDER")?).text() {
        "BEST" => Ok(Order::Best),
        "LISTED" => Ok(Order::Listed),
        "ROTATE" => Ok(Order::Rotate),
        _ => syntax("ORDER must be best, listed or rotate"),
    }
}

impl Command for Claim {
    const SPEC: Spec = reference::JOB_CLAIM.with("write blocking", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let worker = call.args.worker()?;
        let mut wanted = ClaimRequest::of(worker);
        wanted.read(&mut call.args, call.ctx)?;
        wanted.take(call, |_| Ok(None))
    }
}

/// A worker's request for jobs.
pub struct ClaimRequest<'a> {
    worker: &'a [u8],
    options: Options<'a>,
    /// The connection that carries the claims, if they are session claims.
    session: Option<u64>,
}

impl<'a> ClaimRequest<'a> {
    fn of(worker: &'a [u8]) -> Self {
        ClaimRequest { worker, options: Options::default(), session: None }
    }

    fn read(&mut self, args: &mut Args<'a>, ctx: Ctx) -> Done {
        if args.left() == 0 {
            return Ok(());
        }
        options(args, &mut self.options)?;
        if self.options.session {
            self.session = Some(ctx.connection().map_or_else(|| syntax(NO_CONNECTION), Ok)?);
        }
        Ok(())
    }

    /// Reads what follows the word CLAIM in a verb that ends work, up to the end. A claim by id is
    /// not allowed there: it might be refused after work has ended.
    pub fn next(args: &mut Args<'a>, ctx: Ctx, worker: &'a [u8]) -> Result<Self, CommandError> {
        let mut wanted = Self::of(worker);
        wanted.read(args, ctx)?;
        match wanted.options.id {
            _ if worker == ANYBODY => syntax("worker must not be '*' with CLAIM"),
            Some(_) => syntax("CLAIM at the end of a verb excludes ID"),
            None => Ok(wanted),
        }
    }

    /// For how many jobs the client waits, if for more than one.
    fn batch(&self) -> Option<Batch> {
        let Options { least, linger, .. } = self.options;
        let least = least.filter(|least| *least > 1)?;
        Some(Batch { least, linger, since: world::now(), sees: false })
    }

    /// Runs `before`, claims what there is and replies, or waits. `before` may end work: clients
    /// that already wait get first what that frees. A client that must get a refusal does not wait.
    pub fn take(
        self,
        call: &Call<'_>,
        before: impl FnOnce(&mut Commit<'_>) -> Result<Option<Ending>, CommandError>,
    ) -> Done {
        let mut batch = self.batch().filter(|_| !call.ctx.denies_blocking());
        let ClaimRequest { worker, mut options, session } = self;
        let shape = std::mem::take(&mut options.asked).shape(|| CLAIM_FIELDS);
        let default = [board::DEFAULT_QUEUE];
        let request = Request {
            worker,
            queues: options.queues.as_ref().map_or(&default, |(_, queues)| queues),
            order: options.order.unwrap_or_default(),
            lease: options.lease,
        };
        let key = call.key();
        let reply = call.ctx.reply();
        let mut ending = None;
        let answered = Commit::run(call.ctx, &key, |commit| {
            ending = before(commit)?;
            if ending.as_ref().is_some_and(Ending::is_kept) {
                begin(reply, ending.as_ref());
                reply.null_array();
                return Ok(true);
            }
            batch.take_if(|_| options.block.is_none() || ending.as_ref().is_some_and(Ending::has_refusal));
            let slots = match options.id {
                Some(id) => smallvec![claim_id(commit, &request, id)?],
                None => claim(commit, &request, &options, &mut batch, &shape.fields)?,
            };
            if slots.is_empty() && options.block.is_some() {
                let now = commit.env.now;
                commit.board().wait_for_permits(request.queues, now);
            }
            for slot in &slots {
                commit.carry(*slot, session)?;
            }
            if !slots.is_empty() {
                begin(reply, ending.as_ref());
                write_records(reply, commit.board(), &slots, &shape);
            }
            Ok(!slots.is_empty())
        })?;
        let refused = ending.as_ref().is_some_and(Ending::has_refusal);
        match options.block {
            _ if answered => {}
            Some(timeout) if !refused && !call.ctx.denies_blocking() => {
                let wait = Wait {
                    worker: worker.to_vec(),
                    queues: request.queues.iter().map(|queue| Name::from(*queue)).collect(),
                    order: request.order,
                    count: options.count.unwrap_or(1),
                    batch,
                    over: false,
                    lease: options.lease,
                    session,
                    shape,
                    ending,
                };
                park(&call.client(), timeout, wait);
            }
            _ => {
                begin(reply, ending.as_ref());
                reply.null_array();
            }
        }
        Ok(())
    }
}

fn claim_id(commit: &mut Commit<'_>, request: &Request<'_>, id: &[u8]) -> Result<u32, CommandError> {
    let claimed = commit.decide(Subject::Job(id), |board, env| board.claim_id(env, request, id))?;
    let slot = claimed.slot;
    commit.apply(&claimed)?;
    Ok(slot)
}

fn claim(
    commit: &mut Commit<'_>,
    request: &Request<'_>,
    options: &Options<'_>,
    batch: &mut Option<Batch>,
    fields: &[Fields],
) -> Result<Slots, CommandError> {
    commit.serve_first()?;
    let mut env = commit.env;
    let count = options.count.unwrap_or(1).min(config().max_batch as usize);
    let mut slots = Slots::new();
    // One record always fits.
    let mut room = (count > 1).then(|| Room::new(fields));
    let mut fits = true;
    if let Some(seen) = options.seen {
        let held: Vec<u32> = commit.board().held(request.worker, seen).take(count).collect();
        for slot in held {
            if let Some(beaten) = commit.board().keep(slot, options.lease) {
                commit.apply(beaten)?;
            }
            slots.push(slot);
            fits = room.as_mut().is_none_or(|room| room.take(commit.board(), &slots));
            if !fits {
                break;
            }
        }
    }
    if let Some(batch) = batch.as_mut().filter(|_| slots.is_empty()) {
        if waits_for_more(commit, request, batch) {
            return Ok(slots);
        }
    }
    if request.order == Order::Rotate {
        env.rotation = world::next_rotation();
    }
    let count = count.min(slots.len().saturating_add(commit.board().most_for(request)));
    let begin = commit.board().claim_work();
    while fits && slots.len() < count && !commit.board().has_worked_enough(begin) {
        let claimed = match commit.board().claim(&env, request, slots.len() as u64) {
            Ok(Some(claimed)) => claimed,
            // The jobs that it has claimed so far are its own.
            Err(refusal) if slots.is_empty() => return Err(refusal.into()),
            _ => break,
        };
        slots.push(claimed.slot);
        commit.apply(&claimed)?;
        fits = room.as_mut().is_none_or(|room| room.take(commit.board(), &slots));
    }
    Ok(slots)
}

/// Whether the queues have too few jobs for a batch, so that the client waits for more.
fn waits_for_more(commit: &mut Commit<'_>, request: &Request<'_>, batch: &mut Batch) -> bool {
    let mut queues = request.queues.to_vec();
    queues.sort_unstable();
    queues.dedup();
    let now = commit.env.now;
    let found = commit.board().claimable_jobs(&queues, batch.least, now);
    if found >= batch.least {
        return false;
    }
    batch.sees = found > 0;
    if let Some(linger) = batch.linger.filter(|_| found > 0) {
        commit.board().linger_until(now.saturating_add(linger));
    }
    true
}
