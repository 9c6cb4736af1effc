-- How often each token occurs.
--
-- reads    sentences (tokens): normal forms joined by one space
-- key      word
-- ordered  by falling count, then word: a stable numbering for whoever numbers the rows
select word, count(*) as count
from (select unnest(string_split(tokens, ' ')) as word from sentences)
group by word
order by count desc, word
