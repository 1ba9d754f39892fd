package archival

import (
	"sync"
	"time"
)

// sizeLife is how long an archive that was found to be large is not counted again.
const sizeLife = time.Minute

// sizes remembers which archives are large, because counting their passages takes longer than searching them. It is
// safe for concurrent use.
type sizes struct {
	until sync.Map // of time.Time by the archive's key
}

// large returns the keys of the archives that are known to be large.
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

// addLarge remembers an archive for sizeLife. It does not prolong the time of one that is remembered already.
func (s *sizes) addLarge(key int64) { s.until.LoadOrStore(key, time.Now().Add(sizeLife)) }
