-- What was said of every release that is paid for, when it began: also of one whose files could not be renamed yet.
--
-- key      release
-- ordered  as they began
select entries.release, entries.payload
from entries
join releases on releases.id = entries.release
where entries.kind = 'opened' and releases.state in ('written', 'committed')
order by entries.seq
