-- What subjects have spent so far, with the sum of their charges; those who have neither are absent.
--
-- reads    wanted (subject, position): hashes; balances (subject, nano, mac), spends (subject, nano)
-- key      position
--
-- nano and mac are null without a balance, charged without a charge: one of both without the other was edited.
select
    wanted.position,
    balances.nano,
    balances.mac,
    (select sum(spends.nano) from spends where spends.subject = wanted.subject) as charged
from wanted
left join balances on balances.subject = wanted.subject
