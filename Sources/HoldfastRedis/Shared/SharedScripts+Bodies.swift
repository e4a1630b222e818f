// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    /// Bodies, lists and purges.
    extension SharedScript {
        /// ARGV id, version. Opens a body: gives {body, chunks, inline bytes} or "gone"; a body in chunks is kept for its reader.
        static let open = SharedScript(
            """
            local h = redis.call('HMGET', K..'e:'..ARGV[1], 'n', 'b', 'c', 'i')
            if h[1] ~= ARGV[2] or dead(ARGV[1]) then return answer('gone') end
            if h[2] ~= '' then
              redis.call('INCR', K..'r:'..h[2])
              redis.call('EXPIRE', K..'r:'..h[2], 600)
            end
            return answer({h[2], num(h[3]), h[4]})
            """
        )

        /// ARGV body. A reader is done with it.
        static let close = SharedScript(
            """
            local k = K..'r:'..ARGV[1]
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

        /// ARGV body, number. Gives a chunk, and keeps what follows for its reader.
        static let read = SharedScript(
            """
            if redis.call('EXPIRE', K..'r:'..ARGV[1], 600) == 1 and redis.call('EXISTS', K..'o:'..ARGV[1]) == 1 then
              redis.call('EXPIRE', K..'o:'..ARGV[1], 600)
              for i = num(ARGV[2]), num(ARGV[2]) + 8 do redis.call('EXPIRE', K..'b:'..ARGV[1]..':'..i, 600) end
            end
            return answer(redis.call('GET', K..'b:'..ARGV[1]..':'..ARGV[2]))
            """
        )

        /// ARGV after, limit. Gives {id, shown …} in the order of ids, and those that are gone as an id alone.
        static let list = SharedScript(
            """
            local found = {}
            for _, id in ipairs(redis.call('ZRANGEBYLEX', K..'ids', ARGV[1], '+', 'LIMIT', 0, tonumber(ARGV[2]))) do
              if dead(id) then found[#found + 1] = {id} else found[#found + 1] = {id, show(id)} end
            end
            return answer(found)
            """
        )

        /// Gives {writer, key, variant, metadata, useless, tags} of all who write, a thousand at most.
        static let writers = SharedScript(
            """
            local found = {}
            for _, w in ipairs(redis.call('ZREVRANGE', K..'wi', 0, 999)) do
              local h = redis.call('HMGET', K..'w:'..w, 'k', 'v', 'd', 'u', 't')
              if h[1] then found[#found + 1] = {w, h[1], h[2], h[3], h[4], h[5]} end
            end
            return answer(found)
            """
        )

        /// ARGV writers. What they write will not appear.
        static let stop = SharedScript(
            """
            for _, w in ipairs(ARGV) do dropwriter(w) end
            return answer('stopped')
            """
        )

        /// ARGV kind ("all", "tag" or "prefix"), word, channel, origin. Marks what it names as gone, in one step; gives the mark.
        ///
        /// A prefix is no mark: only those who write are stopped, and the entries are taken by ``sweepPrefix``.
        static let mark = SharedScript(
            """
            local n = redis.call('INCR', K..'n')
            if ARGV[1] == 'all' then redis.call('SET', K..'all', n) end
            if ARGV[1] == 'tag' then redis.call('HSET', K..'tg', ARGV[2], n) end
            if ARGV[1] == 'prefix' then
              for _, w in ipairs(redis.call('ZRANGE', K..'wi', 0, -1)) do
                local k = redis.call('HGET', K..'w:'..w, 'k')
                if k and string.sub(k, 1, string.len(ARGV[2])) == ARGV[2] then dropwriter(w) end
              end
            end
            tell(ARGV[3], ARGV[4], '*')
            return answer(n)
            """
        )

        /// ARGV after. Takes what is marked as gone away, some hundred a time; gives {how many, last id}, and no id at the end.
        static let sweep = SharedScript(
            """
            local ids = redis.call('ZRANGEBYLEX', K..'ids', ARGV[1], '+', 'LIMIT', 0, 300)
            local count = 0
            for _, id in ipairs(ids) do if dead(id) then count = count + drop(id) end end
            return answer({count, #ids < 300 and '' or ids[#ids]})
            """
        )

        /// ARGV tag, cursor. As ``sweep``, of what bears a tag; gives {how many, cursor}, "0" at the end.
        static let sweepTag = SharedScript(
            """
            local page = redis.call('SSCAN', K..'t:'..ARGV[1], ARGV[2], 'COUNT', 300)
            local count = 0
            for _, id in ipairs(page[2]) do if dead(id) then count = count + drop(id) end end
            return answer({count, page[1]})
            """
        )

        /// ARGV tag, mark. Forgets the mark of a tag once nothing is left of what it names.
        static let unmark = SharedScript(
            """
            if redis.call('HGET', K..'tg', ARGV[1]) == ARGV[2] then
              for _, w in ipairs(redis.call('ZRANGE', K..'wi', 0, -1)) do
                if num(redis.call('HGET', K..'w:'..w, 'q')) < num(ARGV[2]) then return answer('kept') end
              end
              redis.call('HDEL', K..'tg', ARGV[1])
            end
            return answer('done')
            """
        )

        /// ARGV prefix, after. Takes keys that begin with a prefix, all variants of a key in one step; as ``sweep``.
        static let sweepPrefix = SharedScript(
            """
            local ids = redis.call('ZRANGEBYLEX', K..'ids', ARGV[2], '+', 'LIMIT', 0, 200)
            local count = 0
            for _, id in ipairs(ids) do
              local k = redis.call('HGET', K..'e:'..id, 'k')
              if k and string.sub(k, 1, string.len(ARGV[1])) == ARGV[1] then
                for _, other in ipairs(redis.call('ZRANGE', K..'k:'..string.sub(id, 1, 32), 0, -1)) do
                  local o = redis.call('HGET', K..'e:'..other, 'k')
                  if o == k then
                    if dead(other) then drop(other) else count = count + drop(other) end
                  end
                end
              end
            end
            return answer({count, #ids < 200 and '' or ids[#ids]})
            """
        )
    }
#endif
