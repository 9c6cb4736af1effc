-- Word triples that belong together, with four measures of how much they do.
--
-- reads    words (word_id, word, count), trigrams (first_id, second_id, third_id, count): no punctuation, no connectors
-- params   as in collocation_bigrams.sql
-- key      (first_word, second_word, third_word)
-- source   docs/collocations.md. With e = c(x) c(y) c(z) / N^2, what c(xyz) would be if x, y and z were independent:
--          PMI = log2( c(xyz) / e ), CLMLDP section 4.1; NPMI = PMI / -2 log2( c(xyz) / N ), after Bouma 2009;
--          LLR = 2 ( c ln( c / e ) + ( N - c ) ln( ( N - c ) / ( N - e ) ) ), after Dunning 1993, of one binomial:
--          the full 2 x 2 x 2 table needs pairs with a gap, x ? z, which are not counted;
--          t = ( c(xyz) - e ) / sqrt( c(xyz) ), after Church et al. 1991
-- ordered  by the numbers of the words, because row order is part of the file hash that DVC compares
with counted as (
    select
        triple.first_id, triple.second_id, triple.third_id,
        x.word as first_word, y.word as second_word, z.word as third_word, triple.count,
        triple.count::double as xyz,
        x.count::double * y.count / $n_tokens * z.count / $n_tokens as expected,
        log2($n_tokens::double * $n_tokens::double * triple.count / (x.count::double * y.count * z.count)) as pmi_bits,
        $n_tokens::double as n
    from trigrams as triple
    join words as x on x.word_id = triple.first_id
    join words as y on y.word_id = triple.second_id
    join words as z on z.word_id = triple.third_id
    where triple.count >= $min_count
),
scored as (
    select
        *,
        pmi_bits / (-2 * log2(xyz / n)) as npmi,
        2 * (
            xyz * ln(xyz / expected)
            + case when expected < n then (n - xyz) * ln((n - xyz) / (n - expected)) else 0 end
        ) as llr,
        (xyz - expected) / sqrt(xyz) as t_score
    from counted
)
select first_word, second_word, third_word, count, pmi_bits, npmi, llr, t_score
from scored
where pmi_bits >= $min_pmi
    and ($min_npmi is null or npmi >= $min_npmi)
    and ($min_llr is null or llr >= $min_llr)
    and ($min_t_score is null or t_score >= $min_t_score)
order by first_id, second_id, third_id
