-- How often each token occurs in a segmented corpus, as the training of an embedding counts them.
--
-- reads    sentences (line): tokens separated by a space, words of a token joined by _; read once
-- params   $min_count: rarer tokens are left out; $plain_copy: a sentence with collocations is read again as plain words
-- key      token
-- ordered  by falling count, then token, so that each token always gets the same row
with lists as (
    select
        string_split(line, ' ') as tokens,
        string_split(replace(line, '_', ' '), ' ') as words,
        $plain_copy and contains(line, '_') as is_copied
    from sentences
),
tokens as (
    select unnest(tokens || if(is_copied, words, [])) as token
    from lists
)
select token, count(*) as count
from tokens
where token <> ''
group by token
having count(*) >= $min_count
order by count desc, token
