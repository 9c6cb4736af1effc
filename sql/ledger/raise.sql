-- Make the balances of a release's subjects what they are with it. What is 0 then is deleted by the caller.
--
-- reads    sealed (subject, nano, mac)
-- writes   balances (subject, nano, mac)
insert into balances
select subject, nano, mac
from sealed
where nano >= 0
order by subject
on conflict (subject) do update set nano = excluded.nano, mac = excluded.mac
