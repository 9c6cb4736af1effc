-- How many of the subjects of a release have a balance that is not the sum of their charges, or another keyed hash.
--
-- reads    charges (subject, balance), balances (subject, nano, mac), spends (subject, nano)
-- key      one row
-- uses     mac(subject, nano): the keyed hash of a balance
select count(*) as n_edited
from temp.charges
left join balances on balances.subject = charges.subject
where
    charges.balance is not coalesce((select sum(spends.nano) from spends where spends.subject = charges.subject), 0)
    or (balances.subject is not null and balances.mac is not mac(balances.subject, balances.nano))
