-- What subjects have spent so far; those who have spent nothing are absent.
--
-- reads    wanted (subject, position): hashes; balances (subject, nano)
-- key      position
select wanted.position, balances.nano
from wanted
inner join balances on balances.subject = wanted.subject
