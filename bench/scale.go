package main

import "time"

// Scale says how much is measured.
type Scale struct {
	IngestBytes int64 // text of each ingestion
	Passes      int   // of each ingestion, and of its COPY
	SmallFiles  int   // of 10 KB, which go in together
	Queries     int
	SearchFor   time.Duration // each measurement of a search
	Rounds      int           // of those, on each side
	GrepBytes   int64         // text that is searched for patterns
	GrepRuns    int           // of each pattern, on each side
	BulkBytes   int64         // text that goes in while memory is watched, the one above among it
	LargeBytes  int64         // of a large file
	SmallBytes  int64         // of a small one
	Opens       int           // of each
	Starts      int
	History     int           // messages of a long history
	Passages    int           // in one archive, and in archives of smallArchive
	Turns       int           // of an agent's life through compactions
	Settle      time.Duration // after which an idle server is idle
}

const mebibyte = 1 << 20

// scales returns the scales that BENCH_SCALE names. The targets hold for the full one only.
func scales() map[string]Scale {
	return map[string]Scale{
		"full": {IngestBytes: 128 * mebibyte, Passes: 3, SmallFiles: 12_000, Queries: 64, SearchFor: 5 * time.Second,
			Rounds: 3, GrepBytes: 512 * mebibyte,
			GrepRuns: 5, BulkBytes: 1024 * mebibyte, LargeBytes: 50 * mebibyte, SmallBytes: 50 << 10, Opens: 200, Starts: 5,
			Settle: 10 * time.Second, History: 1_000_000, Passages: 100_000, Turns: 2000},
		"small": {IngestBytes: 12 * mebibyte, Passes: 1, SmallFiles: 600, Queries: 64, SearchFor: time.Second, Rounds: 1,
			GrepBytes: 16 * mebibyte,
			GrepRuns:  2, BulkBytes: 32 * mebibyte, LargeBytes: 5 * mebibyte, SmallBytes: 50 << 10, Opens: 50, Starts: 1,
			Settle: 2 * time.Second, History: 40_000, Passages: 20_000, Turns: 200},
		"tiny": {IngestBytes: mebibyte, Passes: 1, SmallFiles: 20, Queries: 50, SearchFor: 50 * time.Millisecond, Rounds: 1,
			GrepBytes: mebibyte, GrepRuns: 1,
			BulkBytes: 3 * mebibyte, LargeBytes: mebibyte, SmallBytes: 20 << 10, Opens: 5, Starts: 1,
			Settle:  10 * time.Millisecond,
			History: 16_000, Passages: 1_000, Turns: 30},
	}
}

// uploaders are the clients that upload at a time.
const uploaders = 6

// copiers are the connections of a COPY baseline: as many as the texts that the server reads at a time.
const copiers = 2

// manyClients are those that a search's throughput is measured with.
const manyClients = 8

// floodClients are the clients of the tenant that floods. Each has an agent and a folder of its own.
const floodClients = 24
