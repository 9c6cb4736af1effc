-- Add what subjects pay for a release to what they have spent. The only way in which a balance grows.
--
-- reads    spends (release, subject, nano)
-- writes   balances (subject, nano)
-- params   $release: number of the release
-- ordered  by subject, so that pages of balances are visited once
insert into balances (subject, nano)
select subject, nano
from spends
where release = $release
order by subject
on conflict (subject) do update set nano = balances.nano + excluded.nano
