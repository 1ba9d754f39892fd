package archival

import (
	"sync"
	"time"
)

// sizeLife is how long a large archive is not counted again.
const sizeLife = time.Minute

// sizes remembers which archives are large, because counting their passages takes longer than searching them. It is
// safe for concurrent use.
type sizes struct {
	until sync.Map // archive key → time.Time
}

// large returns the keys of the archives that are remembered as large.
func (s *sizes) large() []int64 {
	keys := []int64{}
	s.until.Range(func(key, until any) bool {
		if time.Now().After(until.(time.Time)) {
			s.until.Delete(key)
		} else {
			keys = append(keys, key.(int64))
		}
		return true
	})
	return keys
}

// addLarge remembers an archive for sizeLife. For an archive that is remembered already, the time is not extended.
func (s *sizes) addLarge(key int64) { s.until.LoadOrStore(key, time.Now().Add(sizeLife)) }
