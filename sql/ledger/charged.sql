-- The opening entry of every charged release, also of a release whose files could not be renamed yet.
--
-- key      release
-- ordered  by the start of the releases
select entries.release, entries.payload
from entries
join releases on releases.id = entries.release
where entries.kind = 'opened' and releases.state in ('written', 'committed')
order by entries.seq
