-- The last releases with what was reserved for them, newest first.
--
-- reads    releases (number, id, state), entries (release, time, kind, payload)
-- params   $limit: how many
-- key      id
-- ordered  newest first
--
-- about is JSON, as the chain has it; reserved is JSON of amounts in epsilon and of counts, null where nothing was.
select
    releases.id,
    releases.state,
    opened.time,
    json_extract(opened.payload, '$.about') as about,
    case when reserved.payload is not null then json_object(
        'budget', json_extract(reserved.payload, '$.budget') / 1e9,
        'cap', json_extract(reserved.payload, '$.cap') / 1e9,
        'epsilon', json_extract(reserved.payload, '$.total') / 1e9,
        'documents', json_extract(reserved.payload, '$.documents'),
        'charged', json_extract(reserved.payload, '$.documents') - json_extract(reserved.payload, '$.withheld'),
        'withheld', json_extract(reserved.payload, '$.withheld'),
        'subjects', json_extract(reserved.payload, '$.subjects'),
        'paying', json_extract(reserved.payload, '$.spends'),
        'exhausted', json_extract(reserved.payload, '$.exhausted')
    ) end as reserved
from releases
left join entries as opened on opened.release = releases.id and opened.kind = 'opened'
left join entries as reserved on reserved.release = releases.id and reserved.kind = 'reserved'
order by releases.number desc
limit $limit
