// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    /// Lookups, writes and changes of single entries.
    extension SharedScript {
        /// ARGV digest, key. Returns what is shown of each variant, newest first.
        static let look = SharedScript(
            """
            local found = {}
            for _, id in ipairs(ask('ZREVRANGE', K..'k:'..ARGV[1], 0, -1) or {}) do
              if dead(id) then
                drop(id)
              else
                local h = show(id)
                if h[1] == ARGV[2] then
                  h[1] = ''
                  found[#found + 1] = h
                  -- What is among the eighth that was asked for last stays there without a write.
                  if h[9] == 0 and sum('tick') - num(ask('ZSCORE', K..'age', id)) > sum('count') / 8 then
                    local tick = ask('HINCRBY', G, 'tick', 1)
                    if tick then ask('ZADD', K..'age', 'XX', tick, id) end
                  end
                end
              end
            end
            return answer(found)
            """
        )

        /// Tries every command of all scripts on a key that nobody needs, and fails if the user may not use one.
        static let tryAll = SharedScript(
            """
            force()
            for words in string.gmatch([[SET k 1|GET k|DEL k|INCR k|DECR k|EXPIRE k 9|PEXPIRE k 9000|PTTL k|PERSIST k|EXISTS k|RENAME k k|
              UNLINK k|HSET k a 1|HINCRBY k a 1|HGET k a|HMGET k a|HLEN k|HEXISTS k a|HDEL k a|SADD k a|SCARD k|SISMEMBER k a|SPOP k 1|
              SREM k a|ZADD k 1 a|ZCARD k|ZSCORE k a|ZRANGE k 0 1|ZREVRANGE k 0 1|ZRANGEBYLEX k - +|ZRANGEBYSCORE k 0 1|ZREM k a|TIME]],
              '[^|]+') do
              local command = {}
              for word in string.gmatch(words, '%S+') do command[#command + 1] = word == 'k' and K..'none' or word end
              ask(unpack(command))
            end
            force()
            ask('PUBLISH', K..'changes', O)
            return answer('tried')
            """
        )

        /// Begins an epoch if there is none, or none that is complete, and checks whether messages can be published.
        static let agree = SharedScript(
            """
            force()
            if not sound() then renew() end
            tell('')
            return answer('agreed')
            """
        )

        /// Removes everything by starting a new epoch. The last resort for what cannot be removed on its own.
        static let renew = SharedScript(
            """
            renew()
            return answer('renewed')
            """
        )

        /// ARGV bytes, now. Evicts that many bytes, after what a former index left.
        static let shrink = SharedScript(
            """
            force()
            evicted = evicted + clear('+', 300)
            room(num(ARGV[1]), sum('used'), ARGV[2])
            return answer('done')
            """
        )

        /// ARGV writer, digest, key, variant, metadata, useless, tags, body. Registers a writer, with the time when its key
        /// last changed; returns {"begun", milliseconds now}, or "superseded" if its key may have been made with another
        /// secret.
        static let begin = SharedScript(
            """
            if not sound() then renew() end
            if not agreed then return answer('superseded') end
            if size('ZCARD', K..'k:'..ARGV[2]) < 0 then redis.call('UNLINK', K..'k:'..ARGV[2]) end
            if size('SCARD', K..'wk:'..ARGV[2]) < 0 then redis.call('UNLINK', K..'wk:'..ARGV[2]) end
            reap()
            redis.call('HSET', K..'w:'..ARGV[1], 'g', ARGV[2], 'k', ARGV[3], 'v', ARGV[4], 'd', ARGV[5], 'u', ARGV[6],
              't', ARGV[7], 'b', ARGV[8], 'c', 0, 'e', E, 'a', changed(ARGV[2]))
            redis.call('HSET', K..'z', ARGV[1], 0)
            redis.call('EXPIRE', K..'w:'..ARGV[1], 21600)
            redis.call('ZADD', K..'wi', milliseconds(), ARGV[1])
            redis.call('SADD', K..'wk:'..ARGV[2], ARGV[1])
            redis.call('EXPIRE', K..'wk:'..ARGV[2], 21600)
            return answer({'begun', milliseconds()})
            """
        )

        /// ARGV writer, body, number, bytes, capacity, now. Stores a chunk; "full" if there is no room, "gone" if
        /// there is no such writer.
        static let chunk = SharedScript(
            """
            local k = K..'b:'..ARGV[2]..':'..ARGV[3]
            if redis.call('EXISTS', K..'w:'..ARGV[1]) == 0 or ask('HEXISTS', K..'z', ARGV[1]) ~= 1 then
              return answer('gone')
            end
            local bytes = string.len(ARGV[4]) + 512
            if not room(bytes, tonumber(ARGV[5]), ARGV[6]) then
              reap()
              if not room(bytes, tonumber(ARGV[5]), ARGV[6]) then return answer('full') end
            end
            redis.call('SET', k, ARGV[4], 'EX', 21600)
            add('used', bytes)
            redis.call('HINCRBY', K..'z', ARGV[1], bytes)
            redis.call('HSET', K..'w:'..ARGV[1], 'c', num(ARGV[3]) + 1)
            redis.call('ZADD', K..'wi', milliseconds(), ARGV[1])
            return answer('kept')
            """
        )

        /// ARGV writer, id, metadata, useless, tags, length, size, inline bytes, capacity, now, when it was requested (0:
        /// unknown), whether it is followed. Returns {"stored", version, pinned}, "superseded" or "full". A body in chunks is
        /// kept for its followers, as for one reader.
        static let commit = SharedScript(
            """
            local w = K..'w:'..ARGV[1]
            local h = redis.call('HMGET', w, 'g', 'k', 'v', 't', 'b', 'e', 'c', 'a')
            if not h[1] then return answer('superseded') end
            local id, body, count = ARGV[2], h[5], num(h[7])
            local held = ask('HGET', K..'z', ARGV[1])
            local lost = h[6] ~= E or not held or ask('SISMEMBER', K..'wk:'..h[1], ARGV[1]) ~= 1
            -- What changed before its request was answered may be what it answers with.
            local asked = num(ARGV[11])
            lost = lost or asked > 0 and num(h[8]) >= asked
            for _, list in ipairs({h[4], ARGV[5]}) do
              for _, t in ipairs(tags(list)) do lost = lost or redis.call('HEXISTS', w, 'x:'..t) == 1 end
            end
            if lost then return answer('superseded') end
            local bytes, cap = tonumber(ARGV[7]), tonumber(ARGV[9])
            if not room(bytes - num(held), cap, ARGV[10]) then return answer('full') end
            local pinned = redis.call('SISMEMBER', K..'pins', id)
            drop(id)
            local n = add('n', 1)
            if count == 0 then body = '' end
            redis.call('HSET', K..'e:'..id, 'k', h[2], 'v', h[3], 'd', ARGV[3], 'u', ARGV[4], 't', ARGV[5], 'n', n, 'l', ARGV[6],
              's', ARGV[10], 'b', body, 'c', count, 'i', ARGV[8], 'e', E)
            if count > 0 then
              if not ask('HSET', K..'bodies', id, body..' '..count) then redis.call('UNLINK', K..'bodies') end
              if ARGV[12] == '1' then hold(body) end
            end
            unbook(ARGV[1])
            redis.call('HSET', K..'z', id, bytes)
            add('used', bytes)
            add('count', 1)
            redis.call('ZADD', K..'k:'..h[1], n, id)
            redis.call('ZADD', K..'ids', 0, id)
            if pinned == 1 and sum('pinned') + bytes <= cap / 2 then
              redis.call('SADD', K..'pins', id)
              add('pinned', bytes)
            else
              pinned = 0
            end
            bear(ARGV[5], id)
            rank(id, ARGV[4])
            expire(id, body, count, ARGV[4], ARGV[10])
            if redis.call('ZCARD', K..'k:'..h[1]) > 64 then
              for _, old in ipairs(redis.call('ZRANGE', K..'k:'..h[1], 0, -1)) do
                if redis.call('SISMEMBER', K..'pins', old) == 0 then
                  drop(old)
                  evicted = evicted + 1
                  break
                end
              end
            end
            redis.call('DEL', w)
            redis.call('ZREM', K..'wi', ARGV[1])
            redis.call('SREM', K..'wk:'..h[1], ARGV[1])
            tell('k'..h[2])
            return answer({'stored', n, pinned})
            """
        )

        /// ARGV writer. Removes what was written; what was committed is no longer the writer's.
        static let release = SharedScript(
            """
            dropwriter(ARGV[1])
            return answer('released')
            """
        )

        /// ARGV id, version, metadata, useless, tags, size, capacity, now. Returns {version, pinned} or "gone".
        static let refresh = SharedScript(
            """
            local id = ARGV[1]
            local h = redis.call('HMGET', K..'e:'..id, 'n', 't', 'b', 'c', 'k')
            if not agreed or h[1] ~= ARGV[2] or dead(id) then return answer('gone') end
            if not sound() then
              renew()
              return answer('gone')
            end
            local cap, old, bytes = tonumber(ARGV[7]), num(redis.call('HGET', K..'z', id)), tonumber(ARGV[6])
            redis.call('ZREM', K..'age', id)
            redis.call('ZREM', K..'useless', id)
            if not room(bytes - old, cap, ARGV[8]) then
              rank(id, redis.call('HGET', K..'e:'..id, 'u'))
              return answer('full')
            end
            local isPinned = redis.call('SISMEMBER', K..'pins', id)
            -- One that outgrows the room for pins loses its pin, as one that is replaced does.
            if isPinned == 1 and sum('pinned') - old + bytes > cap / 2 then
              redis.call('SREM', K..'pins', id)
              add('pinned', -old)
              isPinned = 0
            end
            add('used', bytes - old)
            redis.call('HSET', K..'z', id, bytes)
            if isPinned == 1 then add('pinned', bytes - old) end
            untag(id, h[2])
            bear(ARGV[5], id)
            local n = add('n', 1)
            redis.call('HSET', K..'e:'..id, 'd', ARGV[3], 'u', ARGV[4], 't', ARGV[5], 'n', n)
            redis.call('ZADD', K..'k:'..string.sub(id, 1, 32), n, id)
            rank(id, ARGV[4])
            expire(id, h[3], num(h[4]), ARGV[4], ARGV[8])
            tell('k'..h[5])
            return answer({n, isPinned})
            """
        )

        /// ARGV id, version, key. Returns how many were removed.
        static let remove = SharedScript(
            """
            local n = ask('HGET', K..'e:'..ARGV[1], 'n')
            -- Whoever stored another version has announced it. Of one that was evicted, others may have copies.
            if n and n ~= ARGV[2] then return answer(0) end
            local count = n and drop(ARGV[1]) or 0
            if n and E then add('n', 1) end
            tell('k'..ARGV[3])
            return answer(count)
            """
        )

        /// ARGV digest, key. Returns how many entries were removed.
        static let invalidate = SharedScript(
            """
            force()
            if E then add('n', 1) end
            if not agreed then renew() end
            note('changed', ARGV[1])
            local count = 0
            local k = K..'k:'..ARGV[1]
            local ids = ask('ZRANGE', k, 0, -1) or {}
            redis.call('UNLINK', k, K..'wk:'..ARGV[1])
            for _, id in ipairs(ids) do count = count + drop(id) end
            tell('k'..ARGV[2])
            return answer(count)
            """
        )

        /// ARGV id, version, wanted, capacity. Returns 1 if the entry now is as wanted.
        static let pin = SharedScript(
            """
            local id = ARGV[1]
            local h = redis.call('HMGET', K..'e:'..id, 'n', 'u', 'b', 'c', 'k')
            if h[1] ~= ARGV[2] or dead(id) then return answer(0) end
            local bytes, isPinned = num(redis.call('HGET', K..'z', id)), redis.call('SISMEMBER', K..'pins', id)
            if ARGV[3] == '1' and isPinned == 0 then
              if sum('pinned') + bytes > tonumber(ARGV[4]) / 2 then return answer(0) end
              redis.call('SADD', K..'pins', id)
              add('pinned', bytes)
            elseif ARGV[3] == '0' and isPinned == 1 then
              redis.call('SREM', K..'pins', id)
              add('pinned', -bytes)
            end
            rank(id, h[2])
            if ARGV[3] == '1' then expire(id, h[3], num(h[4]), 'never', '0') end
            tell('k'..h[5])
            return answer(1)
            """
        )
    }

    /// Bodies, lists and purges.
    extension SharedScript {
        /// ARGV id, version. Opens a body: returns {body, chunks, inline bytes} or "gone"; a body in chunks is kept for its
        /// reader.
        static let open = SharedScript(
            """
            local h = redis.call('HMGET', K..'e:'..ARGV[1], 'n', 'b', 'c', 'i')
            if h[1] ~= ARGV[2] or dead(ARGV[1]) then return answer('gone') end
            if h[2] ~= '' then
              force()
              hold(h[2])
            end
            return answer({h[2], num(h[3]), h[4]})
            """
        )

        /// ARGV body. A reader has finished with it.
        static let close = SharedScript(
            """
            local k = K..'r:'..ARGV[1]
            force()
            if redis.call('EXISTS', k) == 1 and redis.call('DECR', k) > 0 then return answer('closed') end
            redis.call('DEL', k)
            local c = redis.call('GET', K..'o:'..ARGV[1])
            if c then
              chunks(ARGV[1], num(c), function(b) redis.call('UNLINK', b) end)
              redis.call('DEL', K..'o:'..ARGV[1])
            end
            return answer('closed')
            """
        )

        /// ARGV body, number. Returns a chunk, and keeps the following ones for the reader; a replica can only do the former.
        static let read = SharedScript(
            """
            if ask('EXPIRE', K..'r:'..ARGV[1], 600) == 1 and redis.call('EXISTS', K..'o:'..ARGV[1]) == 1 then
              redis.call('EXPIRE', K..'o:'..ARGV[1], 600)
              for i = num(ARGV[2]), num(ARGV[2]) + 8 do redis.call('EXPIRE', K..'b:'..ARGV[1]..':'..i, 600) end
            end
            return answer(redis.call('GET', K..'b:'..ARGV[1]..':'..ARGV[2]))
            """
        )

        /// ARGV after, limit. Returns {id, shown …} in the order of ids, and only the id for those that are gone.
        static let list = SharedScript(
            """
            local found = {}
            for _, id in ipairs(ask('ZRANGEBYLEX', K..'ids', ARGV[1], '+', 'LIMIT', 0, tonumber(ARGV[2])) or {}) do
              if dead(id) then found[#found + 1] = {id} else found[#found + 1] = {id, show(id)} end
            end
            return answer(found)
            """
        )

        /// Returns the names of all writers.
        static let writers = SharedScript("return answer(ask('ZRANGE', K..'wi', 0, -1) or {})")

        /// ARGV writers. Returns {writer, key, variant, metadata, useless, tags} of each that is still there.
        static let writing = SharedScript(
            """
            local found = {}
            for i = 1, #ARGV - 3 do
              local h = ask('HMGET', K..'w:'..ARGV[i], 'k', 'v', 'd', 'u', 't') or {}
              if h[1] then found[#found + 1] = {ARGV[i], h[1], h[2], h[3], h[4], h[5]} end
            end
            return answer(found)
            """
        )

        /// ARGV writers. Their entries will not appear.
        static let stop = SharedScript(
            """
            for i = 1, #ARGV - 3 do supersede(ARGV[i]) end
            return answer('stopped')
            """
        )

        /// ARGV kind ("all", "tag", "prefix" or "none"), word, the name of the group that a prefix is of. Makes the selected
        /// entries invisible, in one step. Returns for a tag the set that ``sweepTag`` removes, and for a group whether the
        /// index has anything of it.
        ///
        /// A prefix is not marked: only the writers are stopped, and ``sweepPrefix`` removes the entries. If the index is
        /// incomplete, no one could find what a purge selects, so everything is removed.
        static let mark = SharedScript(
            """
            force()
            local set = ''
            if not sound() or not agreed then
              renew()
            else
              add('n', 1)
              if ARGV[3] ~= '' then
                note('groups', ARGV[3])
                if (ask('ZRANGEBYLEX', K..'ids', '['..ARGV[3], '('..ARGV[3]..'g', 'LIMIT', 0, 1) or {})[1] then set = 'some' end
              else
                redis.call('HSET', G, 'cleared', milliseconds())
              end
              local writers = redis.call('ZRANGE', K..'wi', 0, -1)
              if ARGV[1] == 'all' then turn() end
              if ARGV[1] == 'tag' then
                if redis.call('EXISTS', K..'t:'..ARGV[2]) == 1 then
                  set = 'd:'..E..':'..string.format('%.0f', sum('n'))
                  redis.call('RENAME', K..'t:'..ARGV[2], K..set)
                  redis.call('EXPIRE', K..set, 3600)
                end
                for _, w in ipairs(writers) do
                  if redis.call('EXISTS', K..'w:'..w) == 1 then ask('HSET', K..'w:'..w, 'x:'..ARGV[2], 1) end
                end
              end
              if ARGV[1] == 'prefix' then
                for _, w in ipairs(writers) do
                  local k = ask('HGET', K..'w:'..w, 'k')
                  if k and string.sub(k, 1, string.len(ARGV[2])) == ARGV[2] then supersede(w) end
                end
              end
            end
            tell(ARGV[3] ~= '' and 'p'..ARGV[2] or '*')
            return answer(set)
            """
        )

        /// ARGV from. Removes what is marked as gone, some hundred at a time; returns {how many, where to continue}, the
        /// latter empty at the end.
        static let sweep = SharedScript("return answer({clear(ARGV[1], 300)})")

        /// ARGV set. Like ``sweep``, for the set of a tag; returns {how many, whether there is more}.
        static let sweepTag = SharedScript(
            """
            local ids = ask('SPOP', K..ARGV[1], 300) or {}
            local count = 0
            for _, id in ipairs(ids) do if dead(id) then count = count + drop(id) end end
            return answer({count, #ids < 300 and 0 or 1})
            """
        )

        /// ARGV prefix, from, to. Removes keys that begin with a prefix, all variants of a key in one step; like ``sweep``.
        static let sweepPrefix = SharedScript(
            """
            local ids = ask('ZRANGEBYLEX', K..'ids', ARGV[2], ARGV[3], 'LIMIT', 0, 200) or {}
            local count = 0
            for _, id in ipairs(ids) do
              local k = ask('HGET', K..'e:'..id, 'k')
              if k and string.sub(k, 1, string.len(ARGV[1])) == ARGV[1] then
                for _, other in ipairs(ask('ZRANGE', K..'k:'..string.sub(id, 1, 32), 0, -1) or {}) do
                  local o = ask('HGET', K..'e:'..other, 'k')
                  if o == k then
                    if dead(other) then drop(other) else count = count + drop(other) end
                  end
                end
              end
            end
            return answer({count, ids[200] and '('..ids[200] or ''})
            """
        )
    }
#endif
