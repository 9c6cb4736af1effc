-- The vocabulary: every token of the corpus with its number and frequency.
--
-- reads    shard_words (word, count, kind): the distinct words of each shard; kind 0 punctuation, 1 connector, 2 word
-- key      word_id, and word
-- ordered  punctuation, connectors, words, each by falling count, then by the word itself: "no punctuation, no connector,
--          not too rare" is then a range of word_id, and the numbering does not depend on how the corpus was cut
with words as (
    select word, kind, sum(count)::bigint as count
    from shard_words
    group by word, kind
)
select
    (row_number() over (order by kind, count desc, word) - 1)::integer as word_id,
    word,
    count,
    ['punctuation', 'connector', 'word'][kind + 1] as kind
from words
order by word_id
