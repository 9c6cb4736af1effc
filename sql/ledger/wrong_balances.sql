-- Subjects whose balance differs from the sum of their charges.
--
-- reads    spends (release, subject, nano), balances (subject, nano)
-- key      subject
-- ordered  by key
with both_sides as (
    select subject, nano from spends
    union all
    select subject, -nano from balances
)
select subject, cast(sum(nano) as bigint) as nano_missing
from both_sides
group by subject
having sum(nano) <> 0
order by subject
