package queue

// FairStart returns the SQL expression for the start of an owner's next job in the queue @queue. ownLast is a subquery
// that yields the end of the owner's latest job there, or no row.
//
// Owners share a queue's workers by start-time fair queueing. River starts jobs in the order of scheduled_at, which is
// a virtual time here. The first job of an owner is scheduled at the virtual time of the next job to start, and each
// further job where the owner's job before it ends, by an estimate from that job's size. So an owner with a hundred
// thousand jobs delays another owner's one job by one job, and an owner without jobs gains no advantage. Virtual time
// begins in the year 2000, so that it never reaches the present.
func FairStart(ownLast string) string {
	return `least(now(), greatest('2000-01-01 00:00:00+00'::timestamptz, (
			SELECT scheduled_at FROM river_job
			WHERE state = 'available' AND queue = @queue AND attempt = 0
			ORDER BY priority, scheduled_at, id LIMIT 1), (` + ownLast + `)))`
}
