-- Amounts to subtract from the balances of subjects after a release was aborted.
--
-- reads    spends (release, subject, nano), balances (subject, nano, mac)
-- params   $release: number of the release
-- key      subject
select spends.subject, coalesce(balances.nano, 0) as balance, balances.mac, -spends.nano as paid
from spends
left join balances on balances.subject = spends.subject
where spends.release = $release
order by spends.subject
