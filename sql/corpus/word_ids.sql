-- Vocabulary number of each word of each shard.
--
-- reads    shard_words (shard, local_id, word): the distinct words of each shard, with the shard's own numbers
--          words (word_id, word)
-- key      (shard, local_id)
-- ordered  by key, because the shards are renumbered one after the other
select shard, local_id, word_id
from shard_words
join words using (word)
order by shard, local_id
