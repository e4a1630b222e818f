// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    /// Looking, writing and changing single entries.
    extension SharedScript {
        /// ARGV digest, key. Gives what is shown of each variant, newest first.
        static let look = SharedScript(
            """
            local found = {}
            for _, id in ipairs(redis.call('ZREVRANGE', K..'k:'..ARGV[1], 0, -1)) do
              if dead(id) then
                drop(id)
              else
                local h = show(id)
                if h[1] == ARGV[2] then
                  h[1] = ''
                  found[#found + 1] = h
                  if h[9] == 0 then redis.call('ZADD', K..'age', redis.call('INCR', K..'tick'), id) end
                end
              end
            end
            return answer(found)
            """
        )

        /// ARGV writer, digest, key, variant, metadata, useless, tags, body. Registers a writer.
        static let begin = SharedScript(
            """
            reap()
            redis.call('HSET', K..'w:'..ARGV[1], 'g', ARGV[2], 'k', ARGV[3], 'v', ARGV[4], 'd', ARGV[5], 'u', ARGV[6],
              't', ARGV[7], 'b', ARGV[8], 'r', 0, 'c', 0, 'q', num(redis.call('GET', K..'n')))
            redis.call('EXPIRE', K..'w:'..ARGV[1], 21600)
            redis.call('ZADD', K..'wi', milliseconds(), ARGV[1])
            redis.call('SADD', K..'wk:'..ARGV[2], ARGV[1])
            redis.call('EXPIRE', K..'wk:'..ARGV[2], 21600)
            return answer('begun')
            """
        )

        /// ARGV writer, body, number, bytes, capacity, now. Stores a chunk; "full" where there is no room.
        static let chunk = SharedScript(
            """
            local k = K..'b:'..ARGV[2]..':'..ARGV[3]
            if redis.call('EXISTS', K..'w:'..ARGV[1]) == 0 then
              redis.call('SET', k, ARGV[4], 'EX', 600)
              return answer('superseded')
            end
            local size = string.len(ARGV[4])
            if not room(size, tonumber(ARGV[5]), ARGV[6]) then
              reap()
              if not room(size, tonumber(ARGV[5]), ARGV[6]) then return answer('full') end
            end
            redis.call('INCRBY', K..'used', size)
            redis.call('HINCRBY', K..'w:'..ARGV[1], 'r', size)
            redis.call('HSET', K..'w:'..ARGV[1], 'c', num(ARGV[3]) + 1)
            redis.call('ZADD', K..'wi', milliseconds(), ARGV[1])
            redis.call('SET', k, ARGV[4], 'EX', 21600)
            return answer('kept')
            """
        )

        /// ARGV writer, id, metadata, useless, tags, length, size, inline bytes, capacity, now, first version, channel, origin.
        /// Gives {"stored", version, pinned}, "superseded" or "full".
        static let commit = SharedScript(
            """
            local w = K..'w:'..ARGV[1]
            local h = redis.call('HMGET', w, 'g', 'k', 'v', 't', 'b', 'r', 'c', 'q')
            if not h[1] then return answer('superseded') end
            local id, q, body, count = ARGV[2], num(h[8]), h[5], num(h[7])
            local lost = q < num(redis.call('GET', K..'all'))
            for _, list in ipairs({h[4], ARGV[5]}) do
              if list ~= '[]' then
                for _, t in ipairs(cjson.decode(list)) do lost = lost or q < num(redis.call('HGET', K..'tg', t)) end
              end
            end
            if lost then
              dropwriter(ARGV[1])
              return answer('superseded')
            end
            local size, cap = tonumber(ARGV[7]), tonumber(ARGV[9])
            if not room(size - num(h[6]), cap, ARGV[10]) then return answer('full') end
            local pinned = redis.call('SISMEMBER', K..'pins', id)
            drop(id)
            local n = redis.call('INCR', K..'n')
            if n < tonumber(ARGV[11]) then
              n = tonumber(ARGV[11])
              redis.call('SET', K..'n', ARGV[11])
            end
            if count == 0 then body = '' end
            redis.call('HSET', K..'e:'..id, 'k', h[2], 'v', h[3], 'd', ARGV[3], 'u', ARGV[4], 't', ARGV[5], 'n', n, 'l', ARGV[6],
              's', ARGV[10], 'b', body, 'c', count, 'i', ARGV[8])
            redis.call('HSET', K..'z', id, size)
            redis.call('INCRBY', K..'used', size - num(h[6]))
            redis.call('ZADD', K..'k:'..h[1], n, id)
            redis.call('ZADD', K..'ids', 0, id)
            if pinned == 1 and num(redis.call('GET', K..'pinned')) + size <= cap / 2 then
              redis.call('SADD', K..'pins', id)
              redis.call('INCRBY', K..'pinned', size)
            else
              pinned = 0
            end
            if ARGV[5] ~= '[]' then
              for _, t in ipairs(cjson.decode(ARGV[5])) do redis.call('SADD', K..'t:'..t, id) end
            end
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
            tell(ARGV[12], ARGV[13], 'k'..h[2])
            return answer({'stored', n, pinned})
            """
        )

        /// ARGV writer, body, chunks. Gives up what was written.
        static let release = SharedScript(
            """
            dropwriter(ARGV[1])
            chunks(ARGV[2], num(ARGV[3]), function(k) redis.call('UNLINK', k) end)
            return answer('released')
            """
        )

        /// ARGV id, version, metadata, useless, tags, size, capacity, now, channel, origin. Gives {version, pinned} or "gone".
        static let refresh = SharedScript(
            """
            local id = ARGV[1]
            local h = redis.call('HMGET', K..'e:'..id, 'n', 't', 'b', 'c', 'k')
            if h[1] ~= ARGV[2] or dead(id) then return answer('gone') end
            local cap, old, size = tonumber(ARGV[7]), num(redis.call('HGET', K..'z', id)), tonumber(ARGV[6])
            redis.call('ZREM', K..'age', id)
            redis.call('ZREM', K..'useless', id)
            local fits = room(size - old, cap, ARGV[8])
            local isPinned = redis.call('SISMEMBER', K..'pins', id)
            if fits and isPinned == 1 and num(redis.call('GET', K..'pinned')) - old + size > cap / 2 then fits = false end
            if not fits then
              rank(id, redis.call('HGET', K..'e:'..id, 'u'))
              return answer('full')
            end
            redis.call('INCRBY', K..'used', size - old)
            redis.call('HSET', K..'z', id, size)
            if isPinned == 1 then redis.call('INCRBY', K..'pinned', size - old) end
            if h[2] ~= '[]' then for _, t in ipairs(cjson.decode(h[2])) do redis.call('SREM', K..'t:'..t, id) end end
            if ARGV[5] ~= '[]' then for _, t in ipairs(cjson.decode(ARGV[5])) do redis.call('SADD', K..'t:'..t, id) end end
            local n = redis.call('INCR', K..'n')
            redis.call('HSET', K..'e:'..id, 'd', ARGV[3], 'u', ARGV[4], 't', ARGV[5], 'n', n)
            redis.call('ZADD', K..'k:'..string.sub(id, 1, 32), n, id)
            rank(id, ARGV[4])
            expire(id, h[3], num(h[4]), ARGV[4], ARGV[8])
            tell(ARGV[9], ARGV[10], 'k'..h[5])
            return answer({n, isPinned})
            """
        )

        /// ARGV id, version, channel, origin. Gives how many were removed.
        static let remove = SharedScript(
            """
            local h = redis.call('HMGET', K..'e:'..ARGV[1], 'n', 'k')
            if h[1] ~= ARGV[2] then return answer(0) end
            drop(ARGV[1])
            tell(ARGV[3], ARGV[4], 'k'..h[2])
            return answer(1)
            """
        )

        /// ARGV digest, key, channel, origin. Gives how many entries were removed.
        static let invalidate = SharedScript(
            """
            local count = 0
            for _, id in ipairs(redis.call('ZRANGE', K..'k:'..ARGV[1], 0, -1)) do
              local k = redis.call('HGET', K..'e:'..id, 'k')
              if k == ARGV[2] or not k then count = count + drop(id) end
            end
            for _, w in ipairs(redis.call('SMEMBERS', K..'wk:'..ARGV[1])) do
              if redis.call('HGET', K..'w:'..w, 'k') == ARGV[2] then dropwriter(w) end
            end
            tell(ARGV[3], ARGV[4], 'k'..ARGV[2])
            return answer(count)
            """
        )

        /// ARGV id, version, wanted, capacity, channel, origin. Gives 1 where it is so now.
        static let pin = SharedScript(
            """
            local id = ARGV[1]
            local h = redis.call('HMGET', K..'e:'..id, 'n', 'u', 'b', 'c', 'k')
            if h[1] ~= ARGV[2] or dead(id) then return answer(0) end
            local size, isPinned = num(redis.call('HGET', K..'z', id)), redis.call('SISMEMBER', K..'pins', id)
            if ARGV[3] == '1' and isPinned == 0 then
              if num(redis.call('GET', K..'pinned')) + size > tonumber(ARGV[4]) / 2 then return answer(0) end
              redis.call('SADD', K..'pins', id)
              redis.call('INCRBY', K..'pinned', size)
            elseif ARGV[3] == '0' and isPinned == 1 then
              redis.call('SREM', K..'pins', id)
              redis.call('DECRBY', K..'pinned', size)
            end
            rank(id, h[2])
            if ARGV[3] == '1' then expire(id, h[3], num(h[4]), 'never', '0') end
            tell(ARGV[5], ARGV[6], 'k'..h[5])
            return answer(1)
            """
        )
    }
#endif
