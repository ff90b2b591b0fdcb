//! How random commands are drawn: which, how often, with what.

use board::{
    Exists, OnConflict, OnFailure, OnTimeout, Options, Order, Retry, Setting, State, Until, MOST, SPECS,
};
use proptest::collection::vec;
use proptest::option::{of, weighted};
use proptest::prelude::*;
use proptest::sample::select;

use crate::commands::{
    Act, Change, Command, Extra, Key, More, Named, Other, Part, Say, Signals, Talk, Target, Token, Who,
    Written,
};

fn some_ms() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), 1..50i64, 50..5_000i64, Just(60_000), Just(1 << 40)]
}

fn lease() -> impl Strategy<Value = i64> {
    prop_oneof![4 => 1..3_000i64, 1 => Just(60_000), 1 => Just(1 << 40)]
}

fn options() -> impl Strategy<Value = Options> {
    let counts = || weighted(0.2, -1..3i64);
    let limits = || weighted(0.2, prop_oneof![Just(-1), 1..2_000i64]);
    let pauses = weighted(0.3, (0..500i64, 0..2_000i64));
    let rest = (weighted(0.2, 0..=100i64), weighted(0.2, lease()), limits(), limits());
    let retain = (weighted(0.2, prop_oneof![Just(-1), 0..2_000i64]), weighted(0.3, 1..5i64));
    let plain = (counts(), counts(), pauses, rest, retain);
    prop_oneof![
        1 => Just(Options::default()),
        1 => plain.prop_map(|(retries, lapses, backoff, (jitter, lease, timeout, expire), (retain, cost))| Options {
            retries, lapses, backoff, jitter, lease, timeout, expire, retain, cost,
        }),
    ]
}

fn target(likely: State) -> impl Strategy<Value = Target> {
    prop_oneof![
        6 => any::<u8>().prop_map(move |n| Target::In(likely, n)),
        2 => any::<u8>().prop_map(Target::Any),
        1 => (select(&State::ALL[..]), any::<u8>()).prop_map(|(s, n)| Target::In(s, n)),
    ]
}

fn who() -> impl Strategy<Value = Who> {
    prop_oneof![6 => Just(Who::Holder), 1 => Just(Who::Anybody), 1 => (0..4u8).prop_map(Who::Named)]
}

fn claimer() -> impl Strategy<Value = Who> {
    prop_oneof![6 => Just(Who::Holder), 1 => (0..4u8).prop_map(Who::Named)]
}

fn token() -> impl Strategy<Value = Token> {
    prop_oneof![6 => Just(Token::Right), 3 => Just(Token::Absent), 1 => any::<u8>().prop_map(Token::Old)]
}

fn talk() -> impl Strategy<Value = Option<Talk>> {
    let talk = (
        of(0..=10_000u16),
        of(any::<u8>()),
        of(any::<u8>()),
        vec((0..3u8, any::<u8>()), 0..3),
        any::<bool>(),
    );
    weighted(
        0.5,
        talk.prop_map(|(progress, stage, payload, meta, log)| Talk { progress, stage, payload, meta, log }),
    )
}

fn chunk() -> impl Strategy<Value = Option<Written>> {
    weighted(0.3, (prop_oneof![6 => Just(0), 1 => -2..0i64, 1 => 1..3i64], any::<u8>()))
}

/// What a job is to wait for: one signal for the most part.
fn signals() -> impl Strategy<Value = Signals> {
    let names = prop_oneof![
        3 => (0..4u8).prop_map(|n| vec![n]),
        1 => proptest::sample::subsequence((0..4u8).collect::<Vec<u8>>(), 1..4).prop_shuffle(),
    ];
    let within = weighted(0.6, prop_oneof![4 => 1..3_000i64, 1 => Just(60_000), 1 => Just(1 << 40)]);
    let on_timeout = select(&[OnTimeout::Run, OnTimeout::Run, OnTimeout::Fail, OnTimeout::Cancel][..]);
    (names, any::<bool>(), within, on_timeout)
        .prop_map(|(names, any, within, then)| Signals(names, any, within, then))
}

/// A signal, for a job that waits for the most part.
fn signal() -> impl Strategy<Value = Command> {
    let states = prop_oneof![6 => Just(State::Blocked), 1 => Just(State::Claimed), 1 => Just(State::Ready)];
    (states.prop_flat_map(target), 0..4u8, any::<u8>(), of(0..3u8))
        .prop_map(|(id, name, value, sender)| Command::Signal { id, name, value, sender })
}

fn extra() -> impl Strategy<Value = Extra> {
    let meta = prop_oneof![3 => Just(Vec::new()), 1 => vec((0..3u8, any::<u8>()), 1..3)];
    (meta, weighted(0.2, 0..4u8)).prop_map(|(meta, only_in)| Extra { meta, only_in })
}

/// What is named for limits, each once.
fn named_costs() -> impl Strategy<Value = Named> {
    let some = proptest::sample::subsequence(vec![0u8, 1, 2], 1..=3).prop_shuffle();
    (some, vec(prop_oneof![1 => Just(0), 6 => 1..6i64, 1 => Just(MOST)], 3))
        .prop_map(|(limits, costs)| limits.into_iter().zip(costs).collect())
}

/// A worker's verb with what it says of its claim.
fn says() -> impl Strategy<Value = Command> {
    let cost = weighted(0.6, prop_oneof![1 => Just(0), 8 => 1..9i64, 1 => Just(MOST)]);
    let pause = weighted(0.2, (0..3u8, prop_oneof![1..900i64, Just(1 << 40)]));
    let say = (cost, weighted(0.5, named_costs()), pause);
    (say, worker_verbs())
        .prop_map(|((cost, costs, pause), verb)| Command::Say(Say { cost, costs, pause }, Box::new(verb)))
}

fn worker_verbs() -> impl Strategy<Value = Command> {
    let held = || (who(), target(State::Claimed), token());
    let late = || (Just(Who::Holder), target(State::Ready), token());
    let free = || (Just(Who::Anybody), select(&State::ALL[..]).prop_flat_map(target), token());
    let named = || prop_oneof![8 => held(), 2 => late(), 1 => free()];
    let retry =
        prop_oneof![3 => Just(Retry::Policy), 1 => some_ms().prop_map(Retry::After), 1 => Just(Retry::No)];
    let retain = weighted(0.5, prop_oneof![Just(-1), Just(0), 1..3_000i64]);
    prop_oneof![
        3 => (named(), of(lease()), talk(), chunk()).prop_map(
            |((who, id, token), lease, talk, chunk)| Command::Heartbeat { who, id, token, lease, talk, chunk }
        ),
        3 => (named(), 0..4u8, any::<u8>(), of(lease()), any::<bool>(), chunk()).prop_map(
            |((who, id, token), name, value, lease, replace, chunk)| {
                Command::Step { who, id, token, name, value, lease, replace, chunk }
            }
        ),
        4 => (named(), any::<[bool; 3]>(), retain.clone(), chunk(), extra()).prop_map(
            |((who, id, token), [result, payload, force], retain, chunk, extra)| {
                Command::Consume { who, id, token, result, retain, payload, force, chunk, extra }
            }
        ),
        3 => (named(), awaited(), weighted(0.4, 0..4u8), any::<bool>()).prop_map(
            |((who, id, token), (signals, children), step, payload)| {
                Command::Await { who, id, token, signals, children, step, payload }
            }
        ),
        3 => (
            named(), 0..4u8, of(1..3u8), weighted(0.3, some_ms()), of(-2..3i32), any::<bool>(),
            (weighted(0.3, edges()), weighted(0.3, on_failure()), weighted(0.2, signals())),
            ((chunk(), extra()), (weighted(0.2, 1..5i64), weighted(0.2, named_costs()))),
        ).prop_map(
            |((who, id, token), queue, name, delay, priority, payload, (after, children, signals), ((chunk, extra), price))| {
                Command::Advance {
                    who, id, token, queue, name, delay, priority, payload, after, children, chunk, signals, extra, price,
                }
            }
        ),
        4 => (named(), 0..3u8, any::<[bool; 2]>(), retry, retain, extra()).prop_map(
            |((who, id, token), kind, [message, payload], retry, retain, extra)| {
                Command::Fail { who, id, token, kind, message, retry, payload, retain, extra }
            }
        ),
        2 => (named(), of(some_ms()), any::<bool>(), extra()).prop_map(
            |((who, id, token), delay, reason, extra)| Command::Abandon { who, id, token, delay, reason, extra }
        ),
        1 => (named(), any::<bool>(), extra())
            .prop_map(|((who, id, token), reason, extra)| Command::Trash { who, id, token, reason, extra }),
    ]
}

fn operator_verbs() -> impl Strategy<Value = Command> {
    let waits = || prop_oneof![Just(State::Ready), Just(State::Scheduled), Just(State::Blocked)];
    let states = || prop_oneof![1 => Just(State::Claimed), 3 => waits()];
    let ends = || prop_oneof![Just(State::Failed), Just(State::Cancelled), Just(State::Trashed)];
    let update = prop_oneof![
        3 => (of(-2..3i32), of(0..4u8), of(some_ms()), of(-1..3i64), of(lease()), talk(), unstep()),
        1 => (Just(None), Just(None), Just(None), Just(None), Just(None), talk(), unstep()),
    ];
    let label = (target(State::Ready), tags(), tags(), of(any::<bool>()));
    prop_oneof![
        3 => label.prop_map(|(id, tag, untag, track)| Command::Label { id, tag, untag, track }),
        2 => (states().prop_flat_map(target), any::<bool>(), weighted(0.2, 0..3u8))
            .prop_map(|(id, force, by)| Command::Cancel { id, force, by }),
        1 => (target(State::Claimed), any::<bool>()).prop_map(|(id, front)| Command::Release(id, front)),
        2 => (ends().prop_flat_map(target), of(0..5u8), any::<bool>(), any::<bool>())
            .prop_map(|(id, queue, fresh, payload)| Command::Requeue { id, queue, fresh, payload }),
        1 => (waits().prop_flat_map(target), any::<bool>())
            .prop_map(|(id, fresh)| Command::Requeue { id, queue: Some(4), fresh, payload: false }),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(n, all)| Command::Delete(Target::Any(n), all)),
        3 => (waits().prop_flat_map(target), change(), weighted(0.1, Just(())))
            .prop_map(|(id, what, strict)| Command::Depend { id, what, strict: strict.is_some() }),
        2 => (prop_oneof![3 => states().boxed(), 1 => ends().boxed()].prop_flat_map(target), update).prop_map(
            |(id, (priority, queue, delay, retries, lease, talk, unstep))| {
                Command::Update { id, priority, queue, delay, retries, lease, talk, unstep }
            }
        ),
    ]
}

/// Steps to forget.
fn unstep() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![2 => Just(Vec::new()), 1 => vec(0..4u8, 1..3)]
}

/// Tags, each once, in any order.
fn tags() -> impl Strategy<Value = Vec<u8>> {
    proptest::sample::subsequence((0..5u8).collect::<Vec<u8>>(), 0..4).prop_shuffle()
}

fn edges() -> impl Strategy<Value = Vec<(Target, OnFailure)>> {
    use OnFailure::*;
    let states = prop_oneof![
        4 => Just(State::Ready),
        2 => Just(State::Blocked),
        1 => Just(State::Claimed),
        1 => Just(State::Failed)
    ];
    vec((states.prop_flat_map(target), select(&[Hold, Cancel, Fail, Run][..])), 0..4)
}

fn on_failure() -> impl Strategy<Value = OnFailure> {
    use OnFailure::*;
    select(&[Hold, Cancel, Fail, Run][..])
}

/// What a worker waits for: signals, children, or both.
fn awaited() -> impl Strategy<Value = (Option<Signals>, Option<OnFailure>)> {
    prop_oneof![
        3 => signals().prop_map(|signals| (Some(signals), None)),
        3 => on_failure().prop_map(|on_failure| (None, Some(on_failure))),
        1 => (signals(), on_failure()).prop_map(|(signals, on_failure)| (Some(signals), Some(on_failure))),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => edges().prop_map(Change::Add),
        1 => edges().prop_map(|edges| Change::Remove(edges.into_iter().map(|(id, _)| id).collect())),
        2 => on_failure().prop_map(Change::AddChildren),
        1 => Just(Change::RemoveSignals),
        1 => Just(Change::RemoveChildren),
        1 => Just(Change::Clear),
    ]
}

/// A value within a setting's range, small for the most part.
fn value_of(setting: Setting) -> impl Strategy<Value = i64> {
    let spec = setting.spec();
    let (min, max) = (spec.min, spec.max);
    let most = match setting {
        Setting::Concurrency => 3,
        Setting::Ageing => 200,
        Setting::Rate | Setting::Burst => 5,
        Setting::Weight => 4,
        Setting::StatsDays => 3,
        Setting::MaxJobs | Setting::MaxQueues => 5,
        Setting::MaxGroups | Setting::MaxSchedules | Setting::MaxKeys | Setting::MaxSteps => 3,
        Setting::MaxStepBytes => 30,
        Setting::OutputBytes => 20,
        // What records weigh is no concern of the model's.
        Setting::MaxBytes => -1,
        Setting::Retries | Setting::Lapses | Setting::HistoryFirst | Setting::HistoryLast => 4,
        Setting::Tombstones | Setting::KeepComplete | Setting::KeepFailed => 6,
        Setting::KeepTrashed | Setting::KeepCancelled => 6,
        _ => 2_000,
    };
    prop_oneof![6 => min..=most.clamp(min, max), 1 => Just(min), 1 => Just(max)]
}

fn settings() -> impl Strategy<Value = Command> {
    let any_setting = || (0..SPECS.len()).prop_map(|n| SPECS[n].setting);
    let of_boards = any_setting().prop_filter("the board has it", |s| s.spec().board);
    let configure = (of(0..4u8), of_boards).prop_flat_map(|(queue, setting)| {
        let queue = queue.filter(|_| setting.spec().queue);
        weighted(0.6, value_of(setting)).prop_map(move |value| Command::Configure { queue, setting, value })
    });
    let rule = any_setting()
        .prop_filter("the module has it", |s| s.spec().module)
        .prop_flat_map(|setting| value_of(setting).prop_map(move |value| Command::Rule { setting, value }));
    let few = (of(0..4u8), weighted(0.6, -1..3i64)).prop_map(|(queue, value)| Command::Configure {
        queue,
        setting: Setting::Concurrency,
        value,
    });
    let ages = (of(0..4u8), weighted(0.7, prop_oneof![1..300i64, Just(MOST)]))
        .prop_map(|(queue, value)| Command::Configure { queue, setting: Setting::Ageing, value });
    let graces = (
        of(0..4u8),
        select(&[Setting::Grace, Setting::CancelGrace, Setting::LapseDelay][..]),
        weighted(0.7, 0..600i64),
    )
        .prop_map(|(queue, setting, value)| Command::Configure { queue, setting, value });
    let ownerless = weighted(0.8, 0..=1i64).prop_map(|value| Command::Configure {
        queue: None,
        setting: Setting::Ownerless,
        value,
    });
    let names = [Setting::MaxQueues, Setting::MaxGroups, Setting::MaxSchedules, Setting::MaxKeys];
    let steps = [Setting::MaxSteps, Setting::MaxStepBytes, Setting::OutputBytes, Setting::RetainOutput];
    let bounds = select([&names[..], &steps].concat()).prop_flat_map(|setting| {
        let value = weighted(0.6, value_of(setting));
        value.prop_map(move |value| Command::Configure { queue: None, setting, value })
    });
    let of_groups = any_setting().prop_filter("groups have it", |s| s.spec().group);
    let groups = (0..4u8, weighted(0.7, 0..4u8), of_groups).prop_flat_map(|(queue, group, setting)| {
        let value = weighted(0.6, value_of(setting));
        value.prop_map(move |value| Command::ConfigureGroup { queue, group, setting, value })
    });
    let of_limits = select(&[Setting::Concurrency, Setting::Rate, Setting::RatePeriod, Setting::Burst][..]);
    let limit = (0..3u8, of_limits).prop_flat_map(|(limit, setting)| {
        let value = weighted(0.7, value_of(setting));
        value.prop_map(move |value| Command::ConfigureLimit { limit, setting, value })
    });
    let some = proptest::sample::subsequence(vec![0u8, 1, 2], 0..=2);
    let names = (0..3u8, weighted(0.6, weighted(0.6, 0..4u8)), weighted(0.8, some))
        .prop_map(|(queue, group, limits)| Command::NameLimits { queue, group, limits });
    let dead =
        (0..4u8, weighted(0.8, 0..4u8)).prop_map(|(queue, dead)| Command::NameDeadQueue { queue, dead });
    prop_oneof![2 => limit, 3 => names, 2 => dead, 3 => configure, 1 => rule, 1 => few, 1 => graces, 1 => ownerless, 3 => groups, 1 => ages, 2 => bounds]
}

fn pauses() -> impl Strategy<Value = Command> {
    let queue = || weighted(0.7, 0..5u8);
    let time = weighted(0.5, prop_oneof![1..400i64, Just(1 << 40)]);
    let place = || {
        let group = weighted(0.5, 0..4u8);
        let limit = weighted(0.3, 0..3u8);
        (queue(), group, limit).prop_map(|(queue, group, limit)| match limit {
            Some(_) => (None, None, limit),
            None => (queue, group.filter(|_| queue.is_some()), None),
        })
    };
    let pause = (place(), time, any::<bool>(), 1..4u32);
    let pause = pause.prop_map(|((queue, group, limit), time, release, slice)| {
        let release = release && limit.is_none();
        Command::Pause { queue, group, limit, time, release, slice }
    });
    let resume = place().prop_map(|(queue, group, limit)| Command::Resume(queue, group, limit));
    prop_oneof![2 => pause, 3 => resume]
}

fn workers() -> impl Strategy<Value = Command> {
    let time = weighted(0.7, prop_oneof![4 => 1..3_000i64, 1 => Just(1 << 40)]);
    let how = prop_oneof![
        3 => time.prop_map(|time| (time, false)),
        2 => Just((None, true)),
    ];
    let line = weighted(0.8, 1..4u64);
    let who = (0..4u8, of(0..3u8), vec((0..3u8, any::<u8>()), 0..2));
    let register = (who, how, weighted(0.2, Just(())), line).prop_map(
        |((worker, role, meta), (time, session), anew, line)| Command::Register {
            worker,
            role,
            meta,
            time,
            session,
            anew: anew.is_some(),
            line,
        },
    );
    prop_oneof![
        4 => register,
        1 => (0..4u8, 1..4u32).prop_map(|(worker, slice)| Command::Deregister { worker, slice }),
        3 => (target(State::Claimed), 1..4u64).prop_map(|(id, c)| Command::Bind(id, c)),
        2 => (1..4u64).prop_map(Command::Close),
        2 => (0..4u8, weighted(0.4, Just(()))).prop_map(|(w, quiet)| Command::Quiet(w, quiet.is_some())),
    ]
}

fn time() -> impl Strategy<Value = Command> {
    prop_oneof![
        10 => (1..400i64).prop_map(Command::Pass),
        3 => (400..60_000i64).prop_map(Command::Pass),
        1 => (60_000..100_000_000i64).prop_map(Command::Pass),
        1 => (-2_000..0i64).prop_map(Command::Pass),
        1 => (1..3_000i64).prop_map(Command::Hold),
        6 => (1..4u8, 1..5u32).prop_map(|(slices, n)| Command::Turn { slices, n }),
        3 => Just(Command::Drain),
    ]
}

fn key() -> impl Strategy<Value = Key> {
    use OnConflict::*;
    let until = of(select(&[Until::End, Until::Start][..]));
    let time = weighted(0.4, prop_oneof![1..3_000i64, Just(1 << 40)]);
    let conflict = select(&[Reject, Return, Replace, Replace, Debounce][..]);
    (0..3u8, until, time, conflict).prop_map(|(n, until, time, conflict)| Key(n, until, time, conflict))
}

fn post() -> impl Strategy<Value = Command> {
    let exists = prop_oneof![
        5 => Just(Exists::Refuse),
        1 => Just(Exists::Skip),
        1 => Just(Exists::OnlyReplace),
        2 => Just(Exists::Replace)
    ];
    let meta = (vec((0..3u8, any::<u8>()), 0..2), weighted(0.4, tags()));
    let id = (weighted(0.7, any::<u8>()), weighted(0.9, Just(())).prop_map(|o| o.is_none()), exists);
    let rest = (of(0..4u8), of(0..3u8), of(-2..3i32), weighted(0.3, some_ms()));
    let edges = (weighted(0.4, edges()), weighted(0.2, on_failure()));
    let after = (edges, weighted(0.1, Just(())), weighted(0.6, 0..3u8));
    let key = (weighted(0.3, key()), weighted(0.15, signals()), weighted(0.25, named_costs()));
    let bounds = (weighted(0.3, 0..3u8), weighted(0.5, 1..4i64), key);
    let states = prop_oneof![
        4 => Just(State::Ready),
        2 => Just(State::Claimed),
        3 => Just(State::Blocked),
        1 => Just(State::Failed)
    ];
    let parent = (weighted(0.4, states.prop_flat_map(target)), weighted(0.3, 1..5u32));
    (id, rest, options(), meta, (after, parent), bounds).prop_map(
        |(
            (id, again, exists),
            (queue, name, priority, delay),
            options,
            (meta, tags),
            (((after, children), strict, group), (parent, share)),
            (user, most_live, (unique, signals, costs)),
        )| {
            Command::Post {
                id,
                again,
                exists,
                queue,
                name,
                priority,
                delay,
                options,
                meta,
                after,
                children,
                strict: strict.is_some(),
                group,
                user,
                tags,
                parent,
                share,
                most_live,
                unique,
                signals,
                costs,
            }
        },
    )
}

fn flow() -> impl Strategy<Value = Command> {
    use OnFailure::*;
    let other = || {
        prop_oneof![
            8 => (0..6u8).prop_map(Other::Node),
            1 => target(State::Ready).prop_map(Other::Job),
            1 => target(State::Failed).prop_map(Other::Job),
        ]
    };
    let edges = vec((other(), select(&[Hold, Cancel, Fail, Run][..])), 0..3);
    let part = (
        weighted(0.2, any::<u8>()),
        (of(0..4u8), weighted(0.2, some_ms())),
        (weighted(0.4, edges), weighted(0.2, on_failure()), weighted(0.1, Just(()))),
        (weighted(0.4, other()), weighted(0.3, 1..5u32)),
        (weighted(0.3, 0..3u8), weighted(0.3, 1..4i64), weighted(0.15, key()), weighted(0.15, signals())),
    );
    let part = part.prop_map(
        |(
            id,
            (queue, delay),
            (after, children, strict),
            (parent, share),
            (user, most_live, unique, signals),
        )| {
            let strict = strict.is_some();
            Part {
                id,
                queue,
                delay,
                after,
                children,
                strict,
                parent,
                share,
                user,
                most_live,
                unique,
                signals,
            }
        },
    );
    vec(part, 1..6).prop_map(Command::Flow)
}

fn claims() -> impl Strategy<Value = Command> {
    let order = prop_oneof![Just(Order::Best), Just(Order::Listed), Just(Order::Rotate)];
    prop_oneof![
        6 => (0..4u8, vec(0..5u8, 0..4), order, of(lease()), 1..4usize).prop_map(
            |(worker, queues, order, lease, count)| Command::Claim { worker, queues, order, lease, count }
        ),
        2 => (claimer(), target(State::Ready), of(lease())).prop_map(|(worker, id, lease)| Command::ClaimId { worker, id, lease }),
    ]
}

fn reads() -> impl Strategy<Value = Command> {
    let names = || vec(0..4u8, 0..3);
    let few = || prop_oneof![3 => Just(Vec::new()), 1 => names()];
    let flags = (weighted(0.2, Just(())), weighted(0.2, Just(())), any::<bool>());
    let not = prop_oneof![2 => Just(0), 1 => any::<u16>()];
    let places = (prop_oneof![Just(Vec::new()), vec(select(&State::ALL[..]), 1..3)], few(), few(), few());
    let labels = (few(), few(), few());
    let user = prop_oneof![3 => Just(Vec::new()), 1 => vec(0..3u8, 1..3)];
    use More::*;
    let more = (
        select(&[Posted, Ended, Parent, After, Awaits, Id, Meta, Stage, Message, Contains][..]),
        any::<u8>(),
    );
    let more = prop_oneof![2 => Just(Vec::new()), 1 => vec(more, 1..3)];
    (places, labels, flags, not, (1..6usize, user, more)).prop_map(
        |(
            (state, queue, group, worker),
            (name, tag, kind),
            (lapsed, tracked, reverse),
            not,
            (page, user, more),
        )| {
            Command::List {
                state,
                queue,
                group,
                worker,
                name,
                lapsed: lapsed.is_some(),
                tag,
                kind,
                tracked: tracked.is_some(),
                user,
                more,
                not,
                page,
                reverse,
            }
        },
    )
}

fn selections() -> impl Strategy<Value = Command> {
    let update = (of(-2..3i32), of(0..4u8), weighted(0.2, some_ms()), talk(), weighted(0.3, tags()));
    let deed = prop_oneof![
        2 => any::<bool>().prop_map(Act::Cancel),
        2 => Just(Act::Release),
        3 => (of(0..5u8), any::<bool>()).prop_map(|(queue, fresh)| Act::Requeue(queue, fresh)),
        1 => Just(Act::Delete),
        2 => (0..4u8, any::<u8>(), of(0..3u8)).prop_map(|(name, value, sender)| Act::Signal(name, value, sender)),
        3 => (update, unstep()).prop_map(|((priority, queue, delay, talk, tag), unstep)| {
            Act::Update { priority, queue, delay, talk, tag, unstep }
        }),
        2 => (tags(), tags(), of(any::<bool>())).prop_map(|(tag, untag, track)| Act::Label(tag, untag, track)),
    ];
    (deed, reads(), 1..6usize, prop_oneof![Just(usize::MAX), Just(300)])
        .prop_map(|(deed, list, count, bytes)| Command::Select { deed, list: Box::new(list), count, bytes })
}

fn schedules() -> impl Strategy<Value = Command> {
    let when = prop_oneof![
        4 => prop_oneof![200..5_000i64, Just(60_000), 1_000_000..40_000_000i64].prop_map(|ms| (Some(ms), None)),
        2 => (0..3u8).prop_map(|n| (None, Some(n))),
        1 => Just((None, None)),
    ];
    let bounds = (weighted(0.2, -3_000..3_000i64), weighted(0.2, -1..20_000i64), weighted(0.2, 0..6u64));
    let ways = (
        of(0..6u8),
        of(0..3u8),
        weighted(0.3, 0..3_000i64),
        weighted(0.2, some_ms()),
        of(0..4u8),
        of(0..3u8),
        of(tags()),
    );
    let limits =
        (weighted(0.3, 0..3u8), weighted(0.3, 1..4i64), weighted(0.3, key()), weighted(0.2, signals()));
    let limits = (limits, weighted(0.2, named_costs()));
    let set = (0..3u8, when, bounds, ways, limits).prop_map(
        |(
            id,
            (every, cron),
            (start, end, max),
            (backlog, overlap, jitter, delay, queue, group, tags),
            ((user, most_live, unique, signals), costs),
        )| {
            Command::Schedule {
                id,
                every,
                cron,
                start,
                end,
                max,
                backlog,
                overlap,
                jitter,
                delay,
                queue,
                group,
                tags,
                user,
                most_live,
                unique,
                signals,
                costs,
            }
        },
    );
    prop_oneof![
        6 => set,
        2 => (0..3u8).prop_map(Command::Unschedule),
        2 => (0..3u8, any::<bool>()).prop_map(|(id, paused)| Command::PauseSchedule(id, paused)),
        2 => (0..3u8).prop_map(Command::RunSchedule),
    ]
}

pub fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        20 => post().boxed(),
        4 => flow().boxed(),
        20 => claims().boxed(),
        20 => worker_verbs().boxed(),
        10 => says().boxed(),
        10 => operator_verbs().boxed(),
        6 => signal().boxed(),
        3 => selections().boxed(),
        7 => settings().boxed(),
        4 => pauses().boxed(),
        5 => schedules().boxed(),
        7 => workers().boxed(),
        20 => time().boxed(),
        6 => reads(),
        1 => Just(Command::Reload),
        1 => Just(Command::ReplayOld),
        1 => Just(Command::Gap),
    ]
}
