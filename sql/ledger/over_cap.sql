-- Subjects that a release brought above the cap that was in force when it was reserved.
--
-- reads    spends (release, subject, nano), releases (number, cap, reserved_seq)
-- key      (subject, nano)
-- ordered  by key
--
-- What was aborted since then is gone from the sum, which can only be smaller for it: no row is a false alarm.
with running as (
    select
        releases.cap,
        spends.subject,
        cast(
            sum(spends.nano) over (partition by spends.subject order by releases.reserved_seq) as bigint
        ) as nano
    from spends
    inner join releases on releases.number = spends.release
)
select subject, nano, cap
from running
where nano > cap
order by subject, nano
