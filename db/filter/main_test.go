package filter_test

import (
	"testing"

	"github.com/loci-memory/loci/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }
