-- How often each token of an embedding directly follows each other token in a sentence of the segmented corpus.
--
-- reads    sentences (line): tokens separated by a space, words of a token joined by _
--          vocabulary (token, number): the tokens of the embedding
-- params   $min_count: rarer pairs are left out; $most: largest number of pairs, the most frequent ones
-- key      first, second
-- ordered  by key
with adjacent as (
    -- Unnesting the list next to the list shifted by one keeps both columns aligned, without a window function.
    select unnest(tokens[:-2]) as first_token, unnest(tokens[2:]) as second_token
    from (select string_split(line, ' ') as tokens from sentences)
),
counted as (
    select first_token, second_token, count(*)::integer as count
    from adjacent
    group by all
    having count(*) >= $min_count
),
numbered as (
    select before.number as first, after.number as second, counted.count as count
    from counted
    join vocabulary as before on before.token = counted.first_token
    join vocabulary as after on after.token = counted.second_token
),
-- Among equally frequent pairs the first by key, so that the limit always selects the same pairs.
frequent as (
    select * from numbered
    order by count desc, first, second
    limit $most
)
select * from frequent order by first, second
