// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// test: smoke
/* Where a backward node has its sequence number is read from the code of torch::autograd::Node::operator(). */
#include <fcntl.h>
#include <unistd.h>

#include "../../bpf/probes/torch/torch_find.h"
#include "elf/elf.h"
#include "test.h"

/* Two beginnings of this function: the node, its second argument, is copied to a register or to the stack. */
__asm__(".text\n"
	".globl node_in_register\n.type node_in_register, @function\nnode_in_register:\n"
	"push %rbp\nmov %rsi,%rbx\nmov 0x28(%rbx),%rax\nmov 0x10(%rbx),%r15\nret\n"
	".size node_in_register, . - node_in_register\n"
	".globl node_on_stack\n.type node_on_stack, @function\nnode_on_stack:\n"
	"push %rbp\nmov %rsp,%rbp\nmov %rdx,%r13\nmov %rsi,-0x268(%rbp)\ncall 1f\n"
	"1: mov -0x268(%rbp),%rax\ncmpb $0x0,-0x12f(%rbp)\nmov 0x30(%rax),%rax\n"
	"mov -0x268(%rbp),%rsi\nmov (%rsi),%rax\nmov 0x18(%rsi),%r15\nret\n"
	".fill 16, 1, 0x90\n"
	".size node_on_stack, . - node_on_stack\n"
	".globl node_unknown\n.type node_unknown, @function\nnode_unknown:\n"
	"push %rbp\nmov %rsp,%rbp\nmov %rsi,-0x268(%rbp)\nmov -0x260(%rbp),%rax\nmov 0x30(%rax),%rcx\n"
	"mov 0x18(%rax),%rcx\nret\n.fill 16, 1, 0x90\n"
	".size node_unknown, . - node_unknown\n");

static u32 word_of(const char *name)
{
	struct elf_symbol function;
	struct elf *elf;
	u32 word = ~0u;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && !elf__open(&elf, fd)) {
		if (!elf__find_symbol(elf, name, &function))
			word = torch_find__node_sequence(elf, &function);
		elf__close(elf);
	}
	close(fd);
	return word;
}

TEST(sequence_of_a_node_in_a_register)
{
	CHECK(word_of("node_in_register") == 2);
}

TEST(sequence_of_a_node_on_the_stack)
{
	CHECK(word_of("node_on_stack") == 3);
}

TEST(no_sequence_from_another_object)
{
	CHECK(word_of("node_unknown") == 0);
}

TEST_MAIN()
