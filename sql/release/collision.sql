-- The first two rows of a source with the same id and different contents, among documents that are not withdrawn.
--
-- reads    incoming (position, document, content, is_withdrawn), gone (document)
-- key      at most one row
with compared as (
    select
        position,
        content,
        first_value(position) over rows_of_it as first_position,
        first_value(content) over rows_of_it as first_content
    from incoming
    anti join gone using (document)
    where document not in (select document from incoming where is_withdrawn)
    window rows_of_it as (partition by document order by position)
)
select first_position, position
from compared
where content <> first_content
order by position
limit 1
