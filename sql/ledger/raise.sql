-- Add what subjects pay for a release to what they have spent.
--
-- reads    charges (subject, balance, paid)
-- writes   balances (subject, nano, mac)
-- uses     mac(subject, nano): the keyed hash of a balance
insert into balances
select subject, balance + paid, mac(subject, balance + paid)
from temp.charges
where paid > 0
order by subject
on conflict (subject) do update set nano = excluded.nano, mac = excluded.mac
