-- The number of each word of each shard.
--
-- reads    shard_words (shard, local_id, word): the distinct words of each shard, as numbered there
--          words (word_id, word)
-- key      (shard, local_id)
-- ordered  by key: whoever renumbers the shards reads them one after the other
select shard, local_id, word_id
from shard_words
join words using (word)
order by shard, local_id
