-- What was said of every release that is paid for, when it began.
--
-- key      release
-- ordered  as they began
select entries.release, entries.payload
from entries
join releases on releases.id = entries.release
where entries.kind = 'opened' and releases.state = 'committed'
order by entries.seq
