-- SPDX-License-Identifier: Apache-2.0
-- The ready questions of a lake. A comment names each and says what it answers. DuckDB and Spark run the same
-- text, so only what both know the same way: no FILTER, no QUALIFY, no integer division.

-- view runs: A run, all its ranks together; the peak is that of the rank with the highest one.
select r.project, r.day, r.run, min(r.started) as started, max(r.duration_ns) as duration_ns,
  max(r.command) as command, max(coalesce(r.program, r.command)) as program, max(r.user) as user, max(r.host) as host, max(r.git_commit) as git_commit,
  max(r.git_branch) as git_branch, max(r.torch) as torch, max(r.alloc_conf) as alloc_conf, max(r.card) as card,
  count(*) as ranks, max(r.world) as world, max(r.peak_bytes) as peak_bytes, min(r.peak_bytes) as least_peak_bytes,
  max(r.peak_reserved_bytes) as peak_reserved_bytes, max(r.used_bytes) as used_bytes, max(r.total_bytes) as total_bytes,
  max(r.growth_bytes) as growth_bytes, max(r.steps) as steps, cast(sum(r.refusals) as bigint) as refusals,
  case when max(case when r.end_state = 'out_of_memory' then 1 else 0 end) = 1 then 'out_of_memory'
       when max(case when r.end_state = 'unknown' then 1 else 0 end) = 1 then 'unknown' else 'ended' end as end_state
from ranks r
group by r.project, r.day, r.run

-- view peak_by_commit: What each commit needed, in order of time, and how much more than the commit before it of the same branch; the same program on the same card.
select c.project, c.program, c.command, c.card, cast(date_trunc('month', c.first_day) as date) as month, c.first_day, c.git_commit, c.git_branch, c.runs,
  c.peak_bytes, c.least_peak_bytes, c.most_peak_bytes, c.growth_bytes, c.refusals,
  c.peak_bytes - lag(c.peak_bytes) over (partition by c.project, c.program, c.card, c.git_branch order by c.first_started, c.git_commit) as change_bytes,
  c.first_started
from (
  select r.project, r.program, max(r.command) as command, r.card, r.git_commit, max(r.git_branch) as git_branch, min(r.day) as first_day, min(r.started) as first_started,
    count(*) as runs, cast(median(r.peak_bytes) as bigint) as peak_bytes, min(r.peak_bytes) as least_peak_bytes,
    max(r.peak_bytes) as most_peak_bytes, max(r.growth_bytes) as growth_bytes, cast(sum(r.refusals) as bigint) as refusals
  from runs r
  group by r.project, r.program, r.card, r.git_commit
) c

-- view stray_ranks: Ranks whose peak is more than 2 % and more than 2 MiB from the median of their run. Of an even number the lower one in the middle is the median; recordings without an end, or damaged, are left out.
select w.project, w.day, w.run, w.rank, w.host, w.peak_bytes, m.median_bytes, w.peak_bytes - m.median_bytes as from_median_bytes,
  m.ranks, w.peak_at, w.end_state, w.command
from (select * from ranks where peak_bytes is not null and not coalesce(truncated, false)) w
join (
  select n.project, n.day, n.run, max(n.nth) as ranks, max(case when 2 * n.nth in (n.ranks, n.ranks + 1) then n.peak_bytes end) as median_bytes
  from (
    select project, day, run, peak_bytes, row_number() over (partition by project, day, run order by peak_bytes) as nth,
      count(*) over (partition by project, day, run) as ranks
    from ranks
    where peak_bytes is not null and not coalesce(truncated, false)
  ) n
  group by n.project, n.day, n.run
) m on w.project = m.project and w.day = m.day and w.run = m.run
where m.ranks > 1 and abs(w.peak_bytes - m.median_bytes) > 2097152 and abs(w.peak_bytes - m.median_bytes) > 2e-2 * m.median_bytes

-- view largest_growth: What stays with each step, by class, line and module: in how many runs, and the most of them.
select g.project, g.class, g.function, g.file, g.line, g.module, count(distinct g.run) as runs,
  max(g.bytes_per_step) as bytes_per_step, max(g.bytes) as bytes, min(g.day) as first_day, max(g.day) as last_day, max(g.run) as last_run
from growth g
group by g.project, g.class, g.function, g.file, g.line, g.module

-- view fragmentation: By setting of the allocator: what was reserved at the peak and in no block, and how often memory ran out.
select f.project, f.alloc_conf, f.card, count(*) as recordings, cast(median(f.cached_bytes) as bigint) as cached_bytes,
  max(f.cached_bytes) as most_cached_bytes, max(f.largest_hole_bytes) as largest_hole_bytes,
  round(100e0 * median(f.cached_share), 1) as cached_percent, cast(sum(f.retries) as bigint) as retries, cast(sum(f.refusals) as bigint) as refusals
from (
  select project, coalesce(alloc_conf, '(default)') as alloc_conf, card, largest_hole_bytes, retries, refusals,
    reserved_at_peak_bytes - peak_bytes as cached_bytes,
    (reserved_at_peak_bytes - peak_bytes) / cast(reserved_at_peak_bytes as double) as cached_share
  from ranks
  where reserved_at_peak_bytes > 0 and reserved_at_peak_bytes >= peak_bytes
) f
group by f.project, f.alloc_conf, f.card

-- view unused_memory: What each user's recordings left unused on their cards at their highest moment, and for how long.
select u.user, u.project, u.card, count(*) as recordings, cast(median(u.unused_bytes) as bigint) as unused_bytes,
  min(u.unused_bytes) as least_unused_bytes, round(100e0 * sum(u.unused_bytes) / sum(u.total_bytes), 1) as unused_percent,
  round(sum(u.hours), 4) as hours, round(sum(u.unused_bytes * u.hours) / 1073741824e0, 3) as unused_gib_hours
from (
  select coalesce(user, '(not known)') as user, project, card, total_bytes, total_bytes - used_bytes as unused_bytes,
    duration_ns / 3.6e12 as hours
  from ranks
  where total_bytes > 0 and used_bytes <= total_bytes
) u
group by u.user, u.project, u.card

-- view out_of_memory: The last refusal of each recording: its cause, who asked, and what would have made room.
select r.project, r.day, r.run, r.rank, r.command, r.card, f.cause, f.text, f.block_bytes, f.function, f.file, f.line, f.module, f.step, f.phase,
  f.remedy, f.remedy_bytes, r.peak_bytes, r.total_bytes, r.user, r.git_commit
from ranks r
join (select project, day, run, rank, cause, text, block_bytes, function, file, line, module, step, phase, remedy, remedy_bytes
      from refusals where cause is not null) f
  on r.project = f.project and r.day = f.day and r.run = f.run and r.rank = f.rank
