-- Word triples that belong together, with four measures of how much they do.
--
-- reads    trigrams (first_id, second_id, third_id, count, first_count, second_count, third_count), as there
-- params   as in collocation_bigrams.sql
-- key      (first_id, second_id, third_id)
-- source   docs/reference/collocations.md. With e = c(x) c(y) c(z) / N^2, what c(xyz) would be if x, y and z were independent:
--          PMI = log2( c(xyz) / e ), CLMLDP section 4.1; NPMI = PMI / -2 log2( c(xyz) / N ), after Bouma 2009;
--          LLR = 2 ( c ln( c / e ) + ( N - c ) ln( ( N - c ) / ( N - e ) ) ), after Dunning 1993, of one binomial:
--          the full 2 x 2 x 2 table needs pairs with a gap, x ? z, which are not counted;
--          t = ( c(xyz) - e ) / sqrt( c(xyz) ), after Church et al. 1991
-- ordered  by key, because row order is part of the file hash that DVC compares
with counted as (
    select
        first_id, second_id, third_id, count,
        count::double as xyz,
        first_count::double * second_count / $n_tokens * third_count / $n_tokens as expected,
        log2(
            $n_tokens::double * $n_tokens::double * count / (first_count::double * second_count * third_count)
        ) as pmi_bits,
        $n_tokens::double as n
    from trigrams
    where count >= $min_count
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
select first_id, second_id, third_id, count, pmi_bits, npmi, llr, t_score
from scored
where pmi_bits >= $min_pmi
    and ($min_npmi is null or npmi >= $min_npmi)
    and ($min_llr is null or llr >= $min_llr)
    and ($min_t_score is null or t_score >= $min_t_score)
order by first_id, second_id, third_id
