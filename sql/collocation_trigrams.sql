-- Word triples that belong together.
--
-- reads    words (word_id, word, count), trigrams (first_id, second_id, third_id, count): no punctuation, no connectors
-- params   $n_tokens: N, all tokens of the corpus; $min_count; $min_pmi in bits
-- key      (first_word, second_word, third_word)
-- source   CLMLDP section 4.1: PMI = log2( N^2 c(xyz) / (c(x) c(y) c(z)) )
-- ordered  by key, because row order is part of the file hash that DVC compares
with scored as (
    select
        x.word as first_word, y.word as second_word, z.word as third_word, triple.count,
        log2($n_tokens::double * $n_tokens::double * triple.count / (x.count::double * y.count * z.count)) as pmi_bits
    from trigrams as triple
    join words as x on x.word_id = triple.first_id
    join words as y on y.word_id = triple.second_id
    join words as z on z.word_id = triple.third_id
)
select first_word, second_word, third_word, count, pmi_bits
from scored
where pmi_bits >= $min_pmi and count >= $min_count
order by first_word, second_word, third_word
