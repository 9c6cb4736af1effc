-- Store the plain keys of subjects who have spent something, in a ledger of plain keys.
--
-- reads    asked (release, subject, key), balances (subject)
-- params   $release: number
-- writes   names (subject, key)
insert into names
select asked.subject, asked.key
from asked
inner join balances on balances.subject = asked.subject
where asked.release = $release and asked.key is not null
on conflict do nothing
