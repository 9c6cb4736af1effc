-- How often the word of each rank occurs, at ranks that are evenly spaced on a logarithmic axis.
--
-- reads    words (word_id, word, count, kind)
-- params   $per_decade: ranks per factor of ten, rounded to whole ranks
-- key      rank
-- ordered  by key, which is the order of the points of the line
with ranked as (
    select row_number() over (order by count desc, word_id) as rank, count, count(*) over () as n_words
    from words
    where kind <> 'punctuation'
),
wanted as (
    select distinct round(pow(10, i / $per_decade::double))::bigint as rank from range(0, 10 * $per_decade) as t(i)
)
select rank, count
from ranked
where rank in (select rank from wanted) or rank = n_words
order by rank
