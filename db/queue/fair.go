package queue

// FairStart returns the SQL expression for the start of an owner's next job in the queue @queue. ownLast is a subquery
// that yields the end of the owner's latest job there, or no row.
//
// Owners share a queue's workers by start-time fair queueing. River hands out jobs by scheduled_at, which here is a
// virtual time that stands where the next job starts. An owner's first job starts there, and each further one where the
// one before it ends; a job's length is estimated from its size. So an owner with a hundred thousand jobs delays
// another owner's one job by one job, and an owner that was quiet earns no credit. Virtual time starts far enough back
// that it never reaches the present.
func FairStart(ownLast string) string {
	return `least(now(), greatest('2000-01-01 00:00:00+00'::timestamptz, (
			SELECT scheduled_at FROM river_job
			WHERE state = 'available' AND queue = @queue AND attempt = 0
			ORDER BY priority, scheduled_at, id LIMIT 1), (` + ownLast + `)))`
}
