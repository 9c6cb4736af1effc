-- Word pairs that belong together.
--
-- reads    words (word_id, word, count), bigrams (first_id, second_id, count): no punctuation, no connector words
-- params   $n_tokens: N, all tokens of the corpus; $min_count; $min_pmi in bits
-- key      (first_word, second_word)
-- source   CLMLDP section 4.1: PMI = log2( N c(xy) / (c(x) c(y)) )
-- ordered  by key, because row order is part of the file hash that DVC compares
with scored as (
    select
        x.word as first_word, y.word as second_word, pair.count,
        log2($n_tokens::double * pair.count / (x.count::double * y.count)) as pmi_bits
    from bigrams as pair
    join words as x on x.word_id = pair.first_id
    join words as y on y.word_id = pair.second_id
)
select first_word, second_word, count, pmi_bits
from scored
where pmi_bits >= $min_pmi and count >= $min_count
order by first_word, second_word
