/* Reading sections of liburcu, inlined as in a C program: its headers allow that in sources whose licence is compatible with the LGPL, as ours is. */
#define _LGPL_SOURCE
#include <stdint.h>
#include <urcu/urcu-memb.h>

void liburcu_register(void) { urcu_memb_register_thread(); }

void liburcu_unregister(void) { urcu_memb_unregister_thread(); }

void liburcu_sections(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		urcu_memb_read_lock();
		urcu_memb_read_unlock();
	}
}

uint64_t liburcu_loads(uint64_t n, const uint64_t *const *source)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < n; i++) {
		urcu_memb_read_lock();
		sum += *rcu_dereference(*source);
		urcu_memb_read_unlock();
	}
	return sum;
}
