-- The last releases with their reservations, newest first.
--
-- reads    releases (number, id, state), entries (release, time, kind, payload)
-- params   $limit: number of releases
-- key      id
-- ordered  newest first
--
-- opened and reserved are payloads of the chain; reserved is null for a release without a reservation.
select releases.id, releases.state, opened.time, opened.payload as opened, reserved.payload as reserved
from releases
left join entries as opened on opened.release = releases.id and opened.kind = 'opened'
left join entries as reserved on reserved.release = releases.id and reserved.kind = 'reserved'
order by releases.number desc
limit $limit
