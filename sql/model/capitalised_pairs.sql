-- How often two words in a row are written with capitals, as names are.
--
-- reads    texts (text): the original texts
-- key      (first_word, second_word), in lower case
-- ordered  by key, because the results depend on row order
with runs as (
    select unnest(regexp_extract_all(text, '[A-Z][A-Za-z''’-]*\.?(?: [A-Z][A-Za-z''’-]*\.?)+')) as run
    from texts
),
words as (
    select string_split(replace(replace(lower(run), '’', ''''), '.', ''), ' ') as words
    from runs
),
pairs as (
    select unnest(list_zip(words[:-2], words[2:])) as pair
    from words
)
select pair[1] as first_word, pair[2] as second_word, count(*)::bigint as count
from pairs
group by all
order by all
